// POST /admin/bench: a burst of streams that the server runs on its own endpoint.
import { type Decoded, flag, list, number, or, schema, text } from "./decode";

const stream = schema("BenchStream", {
  number: number,
  node: or(text, ""),
  first_ms: or(number, 0),
  last_ms: or(number, 0),
  tokens: or(number, 0),
  whole: or(flag, false),
  error: or(text, ""),
});

export const report = schema("BenchReport", {
  model: text,
  requests: number,
  max_tokens: number,
  took_ms: number,
  whole: number,
  tokens: number,
  tokens_per_s: number,
  ttft_p50_ms: or(number, 0),
  ttft_p99_ms: or(number, 0),
  streams: list(stream),
});

export type Report = Decoded<typeof report>;
export type Stream = Report["streams"][number];

// A replica's streams in the rows that show them: one row is one place in its batch.
export function rowsOf(streams: readonly Stream[]): Stream[][] {
  const rows: Stream[][] = [];
  for (const entry of [...streams].sort((a, b) => a.first_ms - b.first_ms)) {
    const free = rows.find((row) => (row.at(-1)?.last_ms ?? 0) <= entry.first_ms);
    if (free) free.push(entry);
    else rows.push([entry]);
  }
  return rows;
}

export function byNode(report: Report): [node: string, rows: Stream[][]][] {
  const answered = report.streams.filter((entry) => entry.tokens > 0);
  const nodes = [...new Set(answered.map((entry) => entry.node))].sort();
  return nodes.map((node) => [node, rowsOf(answered.filter((entry) => entry.node === node))]);
}
