interface Props<T> {
  name: string;
  options: { value: T; label: string }[];
  chosen: T;
  choose: (value: T) => void;
}

// One of a few, side by side.
export function Choice<T extends string | number>({ name, options, chosen, choose }: Props<T>) {
  return (
    <div class="segments" role="group" aria-label={name}>
      {options.map(({ value, label }) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === chosen}
          onClick={() => choose(value)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}
