// The official TypeScript SDKs against the server at FLOTILLA_URL; tests/e2e runs this with node --test.
import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const url = process.env.FLOTILLA_URL;
const model = process.env.FLOTILLA_MODEL;
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "Tell me a story about the sea." }];
const chat = { model, messages, max_tokens: 20, temperature: 0 };

test("chat: whole and streamed are the same", async () => {
  const whole = await openai.chat.completions.create(chat);
  const text = whole.choices[0].message.content;
  assert.ok(text);
  let streamed = "";
  let usage;
  for await (const chunk of await openai.chat.completions.create({
    ...chat, stream: true, stream_options: { include_usage: true },
  })) {
    streamed += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(streamed, text);
  assert.equal(usage.completion_tokens, 20);
});

test("chat: the streaming helper", async () => {
  const runner = openai.chat.completions.stream(chat);
  assert.ok(await runner.finalContent());
});

test("completions", async () => {
  const prompt = { model, prompt: "Once upon a time", max_tokens: 10, temperature: 0 };
  const whole = await openai.completions.create(prompt);
  let streamed = "";
  for await (const chunk of await openai.completions.create({ ...prompt, stream: true })) {
    streamed += chunk.choices[0].text;
  }
  assert.equal(streamed, whole.choices[0].text);
});

test("responses: whole, streamed, and gone on from", async () => {
  const question = { model, input: "My name is Ada.", max_output_tokens: 20, temperature: 0 };
  const whole = await openai.responses.create(question);
  assert.ok(whole.output_text);
  const events = [];
  for await (const event of await openai.responses.create({ ...question, stream: true })) events.push(event);
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, index) => index));
  assert.equal(events.at(0).type, "response.created");
  const deltas = events.filter((event) => event.type === "response.output_text.delta");
  assert.equal(deltas.map((event) => event.delta).join(""), whole.output_text);
  const next = await openai.responses.create({ ...question, input: "And?", previous_response_id: whole.id });
  assert.ok(next.usage.input_tokens > whole.usage.input_tokens);
});

test("messages: whole, streamed, counted", async () => {
  const question = { model, messages, max_tokens: 20, system: "Be brief." };
  const whole = await anthropic.messages.create(question);
  assert.equal(whole.content[0].type, "text");
  const stream = anthropic.messages.stream(question);
  const final = await stream.finalMessage();
  assert.equal(final.stop_reason, "max_tokens");
  assert.equal(final.usage.output_tokens, 20);
  const count = await anthropic.messages.countTokens({ model, messages, system: "Be brief." });
  const input = ({ usage }) => usage.input_tokens + usage.cache_read_input_tokens;
  assert.equal(count.input_tokens, input(whole));
  assert.equal(count.input_tokens, input(final));
});

test("errors are the SDKs' own", async () => {
  await assert.rejects(openai.responses.create({ model: "none", input: "hi" }), OpenAI.NotFoundError);
  await assert.rejects(openai.completions.create({ model, prompt: "x", best_of: 4 }), OpenAI.BadRequestError);
  await assert.rejects(anthropic.messages.create({ model: "none", messages, max_tokens: 1 }), (error) => {
    assert.ok(error instanceof Anthropic.NotFoundError);
    assert.equal(error.error.error.type, "not_found_error");
    return true;
  });
});

test("a stream that is aborted ends at once", async () => {
  const stream = anthropic.messages.stream({ model, messages, max_tokens: 1500 });
  await new Promise((resolve) => stream.once("text", resolve));
  stream.abort();
  await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
});
