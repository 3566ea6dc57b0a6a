import { useId, useState } from "preact/hooks";
import { names, type Settings, wrongValue } from "../chat/settings";
import { Field } from "../parts/field";

const words: Record<(typeof names)[number], { label: string; hint: string; empty: string }> = {
  temperature: { label: "Temperature", hint: "0: always the likeliest", empty: "1" },
  top_p: { label: "Top p", hint: "Share of likelihood", empty: "1" },
  top_k: { label: "Top k", hint: "So many likeliest", empty: "all" },
  max_tokens: { label: "Max tokens", hint: "Of one answer", empty: "to the context's end" },
  seed: { label: "Seed", hint: "Same seed, same answer", empty: "drawn" },
};

// The first wrong value, in words; empty: there is none.
export function faultOf(settings: Settings): string {
  const name = names.find((one) => wrongValue(one, settings[one]) !== "");
  return name ? `${words[name].label}: ${wrongValue(name, settings[name])}` : "";
}

interface Props {
  settings: Settings;
  change: (settings: Settings) => void;
}

// System prompt and sampling, for all columns alike; open where something in it is wrong.
export function ChatSettings({ settings, change }: Props) {
  const system = useId();
  const [open, turn] = useState(false);
  return (
    <details
      class="chat-settings"
      open={open || faultOf(settings) !== ""}
      onToggle={(event) => turn(event.currentTarget.open)}
    >
      <summary>System prompt and sampling</summary>
      <div class="chat-settings-body">
        <div class="field">
          <label for={system}>System prompt</label>
          <textarea
            id={system}
            rows={2}
            value={settings.system}
            placeholder="none"
            onInput={(event) => change({ ...settings, system: event.currentTarget.value })}
          />
        </div>
        <div class="sampling">
          {names.map((name) => (
            <Field
              key={name}
              label={words[name].label}
              hint={words[name].hint}
              placeholder={words[name].empty}
              value={settings[name]}
              wrong={wrongValue(name, settings[name])}
              change={(value) => change({ ...settings, [name]: value })}
              numeric
            />
          ))}
        </div>
      </div>
    </details>
  );
}
