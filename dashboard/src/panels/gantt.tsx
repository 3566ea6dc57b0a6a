import { byNode, type Report, type Stream } from "../bench";
import { count } from "../format";

const rowHeight = 16;
const width = 1000; // of the drawing; it stretches

function Lane({ stream, row, end }: { stream: Stream; row: number; end: number }) {
  const x = (ms: number) => (ms / end) * width;
  const y = row * rowHeight;
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  return (
    <g class="lane" data-whole={stream.whole}>
      <title>
        {`Stream ${stream.number}: first token after ${seconds(stream.first_ms)}, ` +
          `${count(stream.tokens, "token")} until ${seconds(stream.last_ms)}`}
      </title>
      <rect
        x={x(stream.first_ms)}
        y={y + 2}
        width={Math.max(2, x(stream.last_ms) - x(stream.first_ms))}
        height={rowHeight - 4}
        rx="2"
      />
    </g>
  );
}

// When each replica worked on which stream: waves where a stream waited for a place.
export function Gantt({ report }: { report: Report }) {
  const end = Math.max(1, report.took_ms);
  const step = [0, 0.25, 0.5, 0.75, 1];
  return (
    <div class="gantt">
      {byNode(report).map(([node, rows]) => {
        const streams = rows.flat();
        const tokens = streams.reduce((sum, stream) => sum + stream.tokens, 0);
        const together = `${rows.length} at once, ${count(tokens, "token")}`;
        const words = `${count(streams.length, "stream")}, ${together}`;
        return (
          <div key={node} class="gantt-node" data-node={node}>
            <span>
              <strong>{node}</strong> <span class="muted">{words}</span>
            </span>
            <svg
              viewBox={`0 0 ${width} ${rows.length * rowHeight}`}
              height={rows.length * rowHeight}
              preserveAspectRatio="none"
              role="img"
              aria-label={`${node}: ${words}`}
            >
              {step.map((share) => (
                <path
                  key={share}
                  class="gantt-line"
                  d={`M${share * width} 0V${rows.length * rowHeight}`}
                />
              ))}
              {rows.map((row, index) =>
                row.map((stream) => (
                  <Lane key={stream.number} stream={stream} row={index} end={end} />
                )),
              )}
            </svg>
          </div>
        );
      })}
      <div class="gantt-axis num muted" aria-hidden="true">
        {step.map((share) => (
          <span key={share}>{((share * end) / 1000).toFixed(1)} s</span>
        ))}
      </div>
    </div>
  );
}
