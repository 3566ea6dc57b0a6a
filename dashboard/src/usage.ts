// What requests came to, by API key or by day.
import { type Decoded, list, number, or, schema, text } from "./decode";

const row = schema("UsageRow", {
  key: or(text, ""), // empty by day, and for what came without a key
  name: or(text, ""),
  day: or(text, ""), // 2026-11-30, UTC; empty by key
  requests: number,
  prompt_tokens: number,
  cached_tokens: number,
  generated_tokens: number,
});
export const usage = schema("Usage", { rows: list(row) });
export type UsageRow = Decoded<typeof row>;

export const usageWays = ["key", "day"] as const;
export type UsageWay = (typeof usageWays)[number];
export const usagePath = (by: UsageWay) => `/admin/usage?by=${by}`;
export const csvPath = (by: UsageWay) => `${usagePath(by)}&format=csv`;

export function titleOf(row: UsageRow, by: UsageWay): string {
  if (by === "day") return row.day;
  return row.key === "" ? "without a key" : row.name || row.key;
}
