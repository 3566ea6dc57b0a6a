// The official TypeScript SDKs against a server with no room: tests/e2e makes some once both were refused.
import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const url = process.env.FLOTILLA_URL;
const model = process.env.FLOTILLA_MODEL;
const question = { model, messages: [{ role: "user", content: "hi" }], max_tokens: 5 };

// A fetch that tells of each status.
function telling(name, statuses) {
  return async (...request) => {
    const response = await fetch(...request);
    statuses.push(response.status);
    console.log(`${name} got ${response.status}`);
    return response;
  };
}

async function isServedInTheEnd(name, ask) {
  const statuses = [];
  await ask(telling(name, statuses));
  assert.equal(statuses.at(-1), 200);
  assert.ok(statuses.length > 1 && statuses.slice(0, -1).every((status) => status === 429), String(statuses));
}

test("both try again after a 429", () => Promise.all([
  isServedInTheEnd("openai", (fetch) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 9, fetch }).chat.completions.create(question)),
  isServedInTheEnd("anthropic", (fetch) =>
    new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 9, fetch }).messages.create(question)),
]));
