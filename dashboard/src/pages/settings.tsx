import { useState } from "preact/hooks";
import { settings } from "../operations";
import { SettingRow } from "../panels/setting_row";
import { Trouble } from "../parts/trouble";
import { Unavailable } from "../parts/unavailable";
import { useAsked } from "../use_asked";

// The knobs, each with its source.
export function SettingsPage({ generation }: { generation: number }) {
  const [count, grow] = useState(0);
  const [wanted, search] = useState("");
  const asked = useAsked("/admin/settings", settings, `${generation}/${count}`);
  const known = asked.tag === "known" ? asked.value.settings : [];
  const words = wanted.trim().toLowerCase();
  const found = known.filter((s) => `${s.name} ${s.about}`.toLowerCase().includes(words));
  return (
    <div class="page">
      <header class="page-head">
        <h2>Settings</h2>
        <span class="spring" />
        {known.length > 0 && (
          <input
            class="search"
            type="search"
            value={wanted}
            placeholder="Find a setting"
            aria-label="Find a setting"
            onInput={(event) => search(event.currentTarget.value)}
          />
        )}
      </header>
      {asked.tag === "waiting" && <p class="muted">Asking…</p>}
      {asked.tag === "failed" && <Trouble words={asked.message} again={asked.again} />}
      {asked.tag === "missing" && <Unavailable what="settings" route="GET /admin/settings" />}
      {asked.tag === "known" && (
        <ul class="panel settings">
          {found.map((setting) => (
            <SettingRow key={setting.name} setting={setting} changed={() => grow(count + 1)} />
          ))}
          {found.length === 0 && <li class="muted">No setting has these words.</li>}
        </ul>
      )}
    </div>
  );
}
