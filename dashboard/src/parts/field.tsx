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
}

export function Field(props: Props) {
  const { label, hint, value, change, wrong = "", placeholder = "", numeric, autofocus } = props;
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        placeholder={placeholder}
        inputMode={numeric ? "numeric" : "text"}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        autofocus={autofocus ?? false}
        aria-invalid={wrong !== ""}
        aria-describedby={`${id}-hint`}
        onInput={(event) => change(event.currentTarget.value)}
      />
      <span id={`${id}-hint`} class={wrong ? "hint wrong" : "hint"}>
        {wrong || hint}
      </span>
    </div>
  );
}
