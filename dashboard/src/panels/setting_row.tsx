import { useContext, useState } from "preact/hooks";
import { send } from "../api";
import { Notify } from "../notify";
import { isPinned, type Setting, wrongSetting } from "../operations";

interface Props {
  setting: Setting;
  changed: () => void;
}

// One knob: what it does, where its value comes from, and a field where it may be changed.
export function SettingRow({ setting, changed }: Props) {
  const { name, value, source, about, applies } = setting;
  const [edited, edit] = useState<string | null>(null);
  const [refused, refuse] = useState("");
  const notify = useContext(Notify);
  const shown = edited ?? String(value);
  const wrong = edited === null ? "" : wrongSetting(setting, edited) || refused;
  const pinned = isPinned(setting);

  async function put(wanted: number | null) {
    const outcome = await send("PUT", "/admin/settings", { [name]: wanted });
    if (outcome.ok) {
      edit(null);
      changed();
    } else if (outcome.status === 400) refuse(outcome.message);
    else notify(`${name} was not changed`, outcome.message);
  }

  return (
    <li class="setting" data-setting={name}>
      <div>
        <label for={`set-${name}`}>
          <code>{name}</code>
        </label>
        <p class="muted">{about}</p>
      </div>
      <div class="setting-value">
        <input
          id={`set-${name}`}
          value={shown}
          inputMode="decimal"
          disabled={pinned}
          aria-invalid={wrong !== ""}
          aria-describedby={`set-${name}-hint`}
          onInput={(event) => {
            edit(event.currentTarget.value);
            refuse("");
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && edited !== null && !wrong) void put(Number(edited));
            if (event.key === "Escape") edit(null);
          }}
        />
        {edited !== null && edited !== String(value) && (
          <button
            type="button"
            class="button small primary"
            disabled={wrong !== ""}
            onClick={() => put(Number(edited))}
          >
            Save
          </button>
        )}
        {edited === null && source === "stored" && (
          <button type="button" class="button small" onClick={() => put(null)}>
            Reset
          </button>
        )}
      </div>
      <p id={`set-${name}-hint`} class={wrong ? "hint wrong" : "hint"}>
        {wrong || (
          <>
            <span class="pill" data-tone={source === "default" ? "plain" : "live"}>
              {source}
            </span>{" "}
            {source !== "default" && `default ${setting.default} · `}
            {applies && `takes effect ${applies === "at once" ? applies : `at the ${applies}`}`}
            {pinned && " · set from outside, so it cannot be changed here"}
          </>
        )}
      </p>
    </li>
  );
}
