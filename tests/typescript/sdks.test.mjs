// The official TypeScript SDKs against the server at FLOTILLA_URL; tests/e2e runs this with node --test.
import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

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

const Place = z.object({ city: z.enum(["Oslo", "Paris"]), days: z.number().int().min(1).max(9) });
const Weather = z.object({ sunny: z.boolean(), degrees: z.number().int().min(-40).max(50) });
// Of numbers' bounds this SDK sends none.
const Kind = z.object({ sunny: z.boolean(), kind: z.enum(["sun", "rain"]) });
const question = [{ role: "user", content: "What is the weather in Paris?" }];
const place = { type: "object", properties: { city: { enum: ["Oslo", "Paris"] } }, required: ["city"], additionalProperties: false };

test("chat: a tool of a schema is called, whole and streamed", async () => {
  const ask = {
    model, messages: question, max_tokens: 100, temperature: 0, tool_choice: "required", parallel_tool_calls: false,
    tools: [zodFunction({ name: "get_weather", parameters: Place })],
  };
  const whole = await openai.chat.completions.parse(ask);
  assert.equal(whole.choices[0].finish_reason, "tool_calls");
  const [call] = whole.choices[0].message.tool_calls;
  assert.equal(call.function.name, "get_weather");
  Place.parse(call.function.parsed_arguments);
  const pieces = [];
  const runner = openai.chat.completions.stream(ask).on("tool_calls.function.arguments.delta", (event) => {
    pieces.push(event.arguments_delta);
  });
  const streamed = (await runner.finalMessage()).tool_calls[0];
  assert.equal(streamed.function.arguments, call.function.arguments);
  assert.equal(pieces.join(""), call.function.arguments);
  assert.ok(pieces.length > 2, "the arguments come as they are made");
  const messages = [...question, whole.choices[0].message, { role: "tool", tool_call_id: call.id, content: "sunny" }];
  const next = await openai.chat.completions.create({ model, messages, max_tokens: 5 });
  assert.ok(next.choices[0].message.content);
});

test("chat and responses: schemas are parsed", async () => {
  const answer = await openai.chat.completions.parse({
    model, messages: question, max_tokens: 100, seed: 1, response_format: zodResponseFormat(Weather, "weather"),
  });
  Weather.parse(answer.choices[0].message.parsed);
  const response = await openai.responses.parse({
    model, input: question, max_output_tokens: 100, text: { format: zodTextFormat(Weather, "weather") },
  });
  Weather.parse(response.output_parsed);
});

test("responses: a function is called, whole and streamed", async () => {
  const ask = {
    model, input: question, max_output_tokens: 100, temperature: 0, tool_choice: "required",
    tools: [{ type: "function", name: "get_weather", strict: true, parameters: place }],
  };
  const whole = await openai.responses.create(ask);
  const call = whole.output.find((item) => item.type === "function_call");
  assert.ok(place.properties.city.enum.includes(JSON.parse(call.arguments).city));
  const streamed = await openai.responses.stream(ask).finalResponse();
  assert.equal(streamed.output.find((item) => item.type === "function_call").arguments, call.arguments);
});

test("messages: a tool is used, whole and streamed, and a schema parsed", async () => {
  const ask = {
    model, messages: question, max_tokens: 100, temperature: 0, tool_choice: { type: "any", disable_parallel_tool_use: true },
    tools: [{ name: "get_weather", input_schema: place }],
  };
  const whole = await anthropic.messages.create(ask);
  assert.equal(whole.stop_reason, "tool_use");
  const use = whole.content.find((block) => block.type === "tool_use");
  assert.ok(place.properties.city.enum.includes(use.input.city));
  const streamed = await anthropic.messages.stream(ask).finalMessage();
  assert.deepEqual(streamed.content.find((block) => block.type === "tool_use").input, use.input);
  const parsed = await anthropic.messages.parse({
    model, messages: question, max_tokens: 100, output_config: { format: zodOutputFormat(Kind) },
  });
  Kind.parse(parsed.parsed_output);
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

test("a chat stream that is aborted ends at once", async () => {
  const stream = await openai.chat.completions.create({ model, messages, max_tokens: 1500, stream: true });
  let chunks = 0;
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta?.content) chunks += 1;
    if (chunks === 2) stream.controller.abort();
  }
  assert.ok(chunks < 10);
});
