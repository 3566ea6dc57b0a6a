// Settings, events, sessions and logs.
import { type Decoded, flag, list, number, or, schema, text } from "./decode";

const setting = schema("Setting", {
  name: text,
  value: number,
  default: or(number, 0),
  min: or(number, -Infinity),
  max: or(number, Infinity),
  source: or(text, "default"),
  applies: or(text, ""),
  about: or(text, ""),
});
export const settings = schema("Settings", { settings: list(setting) });
export type Setting = Decoded<typeof setting>;

const event = schema("Event", {
  at_unix_ms: number,
  who: or(text, ""),
  action: text,
  status: or(number, 0),
  detail: or(text, ""),
});
export const events = schema("EventList", { events: list(event) });
export type Event = Decoded<typeof event>;

const session = schema("Session", {
  id: text,
  alias: or(text, ""),
  node: or(text, ""),
  tokens: or(number, 0),
  idle_s: or(number, 0),
  named: or(flag, false),
});
export const sessions = schema("SessionList", { sessions: list(session) });
export type Session = Decoded<typeof session>;

// A value from outside the server cannot be changed from a page.
export const isPinned = (setting: Setting) =>
  setting.source === "environment" || setting.source === "flag";

export function wrongSetting(setting: Setting, value: string): string {
  const parsed = Number(value);
  const good =
    value.trim() !== "" &&
    Number.isFinite(parsed) &&
    parsed >= setting.min &&
    parsed <= setting.max;
  return good ? "" : `A number from ${setting.min} to ${setting.max}.`;
}

// A log has no end: the newest lines are kept, and shown a windowful at a time.
export const linesMax = 10_000;
export const linesShown = 400;

export interface Log {
  lines: readonly string[];
  rest: string; // the beginning of a line whose end has not come
  dropped: number;
}
export const noLog: Log = { lines: [], rest: "", dropped: 0 };

export function append(log: Log, text: string): Log {
  const parts = (log.rest + text).split("\n");
  const rest = parts.pop() ?? "";
  const all = [...log.lines, ...parts];
  const over = Math.max(0, all.length - linesMax);
  return { lines: all.slice(over), rest, dropped: log.dropped + over };
}
