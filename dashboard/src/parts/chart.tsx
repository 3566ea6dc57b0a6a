import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { minuteOf } from "../format";
import { alone } from "../history";
import { colours, useThemeCount } from "./colours";

export interface Line {
  label: string;
  colour: number; // which of the series' colours
  dashed?: boolean;
  values: (number | null)[];
}

interface Props {
  title: string;
  unit: string;
  times: number[];
  lines: Line[];
  range_s: number;
  format: (value: number) => string;
}

const height = 190;
const dash = [5, 4];

const clock = (unix_s: number) => minuteOf(unix_s * 1000);

// Where all points are too many, those that no line shows.
const points: uPlot.Series.Points = {
  filter: (chart, series, all) => (all ? null : alone([...(chart.data[series] ?? [])])),
};

type Cursor = number | null; // the point that the pointer is at

function optionsOf(props: Props, width: number, box: HTMLElement, point: (at: Cursor) => void) {
  const { lines, range_s, format } = props;
  const ink = colours(box);
  const axis = { stroke: ink.muted, grid: { stroke: ink.line, width: 1 }, ticks: { show: false } };
  const options: uPlot.Options = {
    width,
    height,
    padding: [10, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: {
      x: { range: (_, __, max) => [max - range_s, max] },
      y: { range: (_, __, max) => [0, Math.max(max * 1.08, 1)] },
    },
    axes: [
      { ...axis, size: 28, font: ink.font, values: (_, ticks) => ticks.map(clock) },
      { ...axis, size: 58, font: ink.font, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...lines.map((line): uPlot.Series => {
        const stroke = ink.series[line.colour % ink.series.length] ?? ink.muted;
        return { label: line.label, stroke, width: 2, points, ...(line.dashed ? { dash } : {}) };
      }),
    ],
    hooks: { setCursor: [(chart) => point(chart.cursor.idx ?? null)] },
  };
  return options;
}

// The value under the pointer, else the newest that is known.
function shown(line: Line, at: Cursor): number | null {
  if (at !== null) return line.values[at] ?? null;
  return line.values.findLast((value) => value !== null) ?? null;
}

export function Chart(props: Props) {
  const { title, unit, times, lines, range_s, format } = props;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [at, point] = useState<Cursor>(null);
  const theme = useThemeCount();
  const shape = lines.map((line) => `${line.label}/${line.colour}`).join();
  const data: uPlot.AlignedData = [times, ...lines.map((line) => line.values)];

  useEffect(() => {
    const shell = box.current;
    if (!shell) return;
    const made = new uPlot(optionsOf(props, shell.clientWidth, shell, point), data, shell);
    chart.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: shell.clientWidth, height }));
    watch.observe(shell);
    return () => {
      watch.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shape, theme, range_s]);
  useEffect(() => chart.current?.setData(data), [times, lines]);

  const words = lines.map((line) => {
    const value = shown(line, at);
    return { ...line, said: value === null ? "–" : format(value) };
  });
  const said = words.map((line) => `${line.label} ${line.said}`).join(", ");
  return (
    <figure class="panel chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="muted">{unit}</span>
        <ul class="chart-legend">
          {words.map((line) => (
            <li key={line.label} data-colour={line.colour % 6} data-dashed={line.dashed ?? false}>
              {line.label} <strong class="num">{line.said}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="chart-box" ref={box} role="img" aria-label={`${title}, now: ${said}`} />
    </figure>
  );
}
