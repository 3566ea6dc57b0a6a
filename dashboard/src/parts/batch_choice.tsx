interface Props {
  checked: boolean;
  change: (batch: boolean) => void;
}

// Whether replicas decode several requests at once.
export function BatchChoice({ checked, change }: Props) {
  return (
    <label class="choice">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      <span>
        <strong>Batch</strong>
        <span class="hint">Continuous batching in replica mode</span>
      </span>
    </label>
  );
}
