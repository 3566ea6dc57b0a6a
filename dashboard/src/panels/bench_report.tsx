import { type Report } from "../bench";
import { count, rate } from "../format";
import { Gantt } from "./gantt";

const ms = (value: number) =>
  value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value)} ms`;

export function BenchReport({ report }: { report: Report }) {
  const failed = report.streams.filter((stream) => !stream.whole);
  const why = [...new Set(failed.map((stream) => stream.error || "it did not come whole"))];
  const figures: [value: string, label: string][] = [
    [rate(report.tokens_per_s), "tokens/s together"],
    [`${report.whole}/${report.requests}`, "whole answers"],
    [`${(report.took_ms / 1000).toFixed(1)} s`, "for all of them"],
    [ms(report.ttft_p50_ms), "first token, p50"],
    [ms(report.ttft_p99_ms), "first token, p99"],
  ];
  return (
    <section class="panel bench-report" aria-label="Result" data-whole={report.whole}>
      <dl class="dials">
        {figures.map(([value, label]) => (
          <div key={label} class="dial">
            <dd>{value}</dd>
            <dt>{label}</dt>
          </div>
        ))}
      </dl>
      {failed.length > 0 && (
        <p class="trouble">
          {count(failed.length, "answer")} failed: {why.join("; ")}
        </p>
      )}
      <h3>
        {report.model}: {count(report.requests, "stream")} of {report.max_tokens} tokens
      </h3>
      <Gantt report={report} />
    </section>
  );
}
