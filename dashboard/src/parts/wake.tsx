import { type Track, trackSeconds } from "../state";

const height = 32;

// Runs of neighbouring samples; nothing is drawn where nothing was heard.
function runs(track: Track): [x: number, value: number][][] {
  const found: [number, number][][] = [];
  let run: [number, number][] = [];
  track.forEach((value, index) => {
    if (value !== null) run.push([trackSeconds - track.length + index, value]);
    if (value === null || index === track.length - 1) {
      if (run.length > 0) found.push(run);
      run = [];
    }
  });
  return found;
}

// Tokens per second of the last two minutes, drawn as the water behind the ship.
export function Wake({ track, words }: { track: Track; words: string }) {
  const peak = Math.max(1, ...track.map((value) => value ?? 0));
  const y = (value: number) => (height - 1.5 - (value / peak) * (height - 5)).toFixed(1);
  return (
    <svg
      class="wake"
      viewBox={`0 0 ${trackSeconds - 1} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words}
    >
      <path class="wake-base" d={`M0 ${height - 0.5}H${trackSeconds}`} />
      {runs(track).map((run) => {
        const line = run.map(([x, value]) => `${x} ${y(value)}`).join("L");
        const first = run[0]?.[0] ?? 0;
        const last = run.at(-1)?.[0] ?? 0;
        return (
          <g key={first}>
            <path class="wake-water" d={`M${first} ${height}L${line}L${last} ${height}Z`} />
            <path class="wake-line" d={`M${line}`} />
          </g>
        );
      })}
    </svg>
  );
}
