import { type Tone } from "./tip";

// The mark: three ships in formation, seen from abeam.
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 45 32" aria-hidden="true">
      <path d="M1 9h20l-4.8 5.5H6C3.5 14.5 1.6 12.5 1 9z" />
      <path d="M23.5 9h20l-4.8 5.5H28.5c-2.5 0-4.4-2-5-5.5z" />
      <path d="M8.5 22.5h28l-7 8H15c-3.6 0-5.8-3-6.5-8z" />
      <g class="mark-cargo">
        <path d="M4.5 3H9v4.5H4.5zM10.6 3h4.5v4.5h-4.5zM27 3h4.5v4.5H27zM33.1 3h4.5v4.5h-4.5z" />
        <path d="M12.5 15.6h5v5.4h-5zM19 15.6h5v5.4h-5zM25.5 15.6h5v5.4h-5z" />
      </g>
    </svg>
  );
}

interface Props {
  width: number; // sequences that the replica runs together
  busy: number;
  tone: Tone;
  words: string;
}

// A replica as a ship: one place on deck for each sequence it can run, loaded where one runs.
export function Hull({ width, busy, tone, words }: Props) {
  const gap = width > 24 ? 1 : 2;
  const cell = Math.min(12, Math.max(2, Math.floor(168 / width) - gap));
  const deck = Math.max(width * (cell + gap) - gap, 22);
  const start = 3;
  const length = deck + start + 12;
  return (
    <svg
      class="hull"
      data-tone={tone}
      width={length}
      height="22"
      viewBox={`0 0 ${length} 22`}
      role="img"
      aria-label={words}
    >
      {Array.from({ length: width }, (_, index) => (
        <rect
          key={index}
          class={index < busy ? "cell loaded" : "cell"}
          x={start + index * (cell + gap) + 0.5}
          y="1.5"
          width={cell - 1}
          height="9"
          rx="1"
        />
      ))}
      <path class="hull-body" d={`M1 12.5h${length - 2}l-7.5 8H7.5C4 20.5 1.8 17.5 1 12.5z`} />
    </svg>
  );
}
