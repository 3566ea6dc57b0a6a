// How far something is; without a total it only says that it moves.
export function Bar({ value, of, words }: { value: number; of: number; words: string }) {
  const share = of > 0 ? Math.min(1, value / of) : 0;
  return (
    <span
      class="bar"
      role="progressbar"
      aria-label={words}
      aria-valuemin={0}
      aria-valuemax={100}
      {...(of > 0 ? { "aria-valuenow": Math.round(share * 100) } : {})}
    >
      <span class="bar-fill" style={{ width: `${(share * 100).toFixed(1)}%` }} />
    </span>
  );
}
