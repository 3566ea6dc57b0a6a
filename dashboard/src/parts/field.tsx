import { useId } from "preact/hooks";

interface Props {
  label: string;
  hint: string;
  value: string;
  change: (value: string) => void;
  wrong?: string; // what is wrong with the value, shown at the field
  placeholder?: string;
  numeric?: boolean;
  autofocus?: boolean;
  secret?: boolean;
}

const plain = { type: "text", autocomplete: "off" } as const;
const hidden = { type: "password", autocomplete: "current-password" } as const;

export function Field(props: Props) {
  const { label, hint, value, change, wrong = "", placeholder = "", numeric, autofocus } = props;
  const { secret = false } = props;
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        placeholder={placeholder}
        inputMode={numeric ? "numeric" : "text"}
        {...(secret ? hidden : plain)}
        autocapitalize="off"
        spellcheck={false}
        autofocus={autofocus ?? false}
        aria-invalid={wrong !== ""}
        aria-describedby={`${id}-hint`}
        onInput={(event) => change(event.currentTarget.value)}
      />
      <span id={`${id}-hint`} class={wrong ? "hint wrong" : "hint"} aria-live="polite">
        {wrong || hint}
      </span>
    </div>
  );
}
