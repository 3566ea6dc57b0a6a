import { useId } from "preact/hooks";

interface Props {
  label: string;
  options: readonly string[];
  chosen: string;
  choose: (option: string) => void;
}

export function Pick({ label, options, chosen, choose }: Props) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={chosen}
        disabled={options.length === 0}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {options.length === 0 && <option value="">none is loaded</option>}
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </div>
  );
}
