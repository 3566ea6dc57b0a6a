// GET /admin/requests: live and recent ones.
import { type Decoded, flag, list, number, or, schema, text } from "./decode";

const moment = schema("RequestMoment", { at_ms: number, what: text, detail: or(text, "") });

export const request = schema("RequestTimeline", {
  id: text,
  model: or(text, ""),
  key: or(text, ""),
  peer: or(text, ""),
  phase: or(text, ""),
  node: or(text, ""),
  arrived_unix_ms: or(number, 0),
  queued_ms: or(number, 0),
  ttft_ms: or(number, null),
  took_ms: or(number, 0),
  prompt_tokens: or(number, 0),
  cached_tokens: or(number, 0),
  completion_tokens: or(number, 0),
  resumed: or(flag, false),
  status: or(number, null),
  end: or(text, ""),
  timeline: or(list(moment), []),
});

export const requests = schema("RequestList", { requests: list(request) });

export type Request = Decoded<typeof request>;

export const isUnderWay = (entry: Request) => entry.phase !== "ended";
