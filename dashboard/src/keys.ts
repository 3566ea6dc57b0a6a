// API keys: who may use the models and how much, and the form in which a new one is described.
import { type Outcome } from "./api";
import { ask } from "./ask";
import { type Decoded, list, number, or, schema, text } from "./decode";

const key = schema("Key", {
  id: text,
  name: text,
  models: or(list(text), []),
  weight: or(number, 1),
  requests_per_min: or(number, 0), // these three: 0 = no bound
  tokens_per_min: or(number, 0),
  max_in_flight: or(number, 0),
  cache_group: or(text, ""),
  expires_unix_s: or(number, 0), // 0 = never
  created_unix_s: or(number, 0),
  in_flight: or(number, 0),
});
export const keys = schema("KeyList", { keys: list(key) });
export type Key = Decoded<typeof key>;

const made = schema("NewKey", { name: text, secret: text });
export type MadeKey = Decoded<typeof made>;

// What was typed; empty = the default.
export interface KeyForm {
  name: string;
  models: string;
  weight: string;
  requests: string;
  tokens: string;
  atOnce: string;
  group: string;
  days: string;
}
export const noKey: KeyForm = {
  name: "",
  models: "",
  weight: "",
  requests: "",
  tokens: "",
  atOnce: "",
  group: "",
  days: "",
};

const nameForm = /^[A-Za-z0-9._-]{1,64}$/;
const nameWords = "1 to 64 letters, digits, dots, dashes and underscores.";
const quotaMax = 1e12;
const daysMax = 36_500;

const parts = (models: string) => models.split(/[\s,]+/).filter((alias) => alias !== "");

function wrongQuota(value: string): string {
  const good = value === "" || (/^[0-9]+$/.test(value) && Number(value) <= quotaMax);
  return good ? "" : "A whole number, or empty for no bound.";
}

// What is wrong with each field; empty = nothing.
export function wrongKey(form: KeyForm, taken: readonly string[]): KeyForm {
  const { name, weight, group, days } = form;
  const share = Number(weight);
  const until = Number(days);
  const taught = taken.includes(name) ? `There is a key '${name}' already.` : "";
  return {
    name: nameForm.test(name) ? taught : nameWords,
    models: "",
    weight: weight === "" || (share >= 0.01 && share <= 100) ? "" : "A number from 0.01 to 100.",
    requests: wrongQuota(form.requests),
    tokens: wrongQuota(form.tokens),
    atOnce: wrongQuota(form.atOnce),
    group: group === "" || nameForm.test(group) ? "" : nameWords,
    days: days === "" || (until > 0 && until <= daysMax) ? "" : "A number of days, or empty.",
  };
}

export const isWrong = (wrong: KeyForm) => Object.values(wrong).some((words) => words !== "");

// POST /admin/keys takes it; what is empty is left out, so that the server's own default holds.
export function keyBody(form: KeyForm, now_s: number): object {
  const numbers = {
    weight: form.weight,
    requests_per_min: form.requests,
    tokens_per_min: form.tokens,
    max_in_flight: form.atOnce,
    expires_unix_s: form.days && String(Math.round(now_s + Number(form.days) * 86_400)),
  };
  const given = Object.entries(numbers).filter(([, value]) => value !== "");
  const models = parts(form.models);
  return {
    name: form.name,
    ...(models.length > 0 ? { models } : {}),
    ...(form.group ? { cache_group: form.group } : {}),
    ...Object.fromEntries(given.map(([field, value]) => [field, Number(value)])),
  };
}

// `shown` gets the secret, which is in this one answer only.
export async function makeKey(body: object, shown: (made: MadeKey) => void): Promise<Outcome> {
  const answer = await ask("/admin/keys", made, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.tag === "known") {
    shown(answer.value);
    return { ok: true };
  }
  const message = answer.tag === "failed" ? answer.message : "This server has no API keys.";
  return { ok: false, status: 0, message };
}
