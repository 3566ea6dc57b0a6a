import { describe, expect, test } from "vitest";
import { messagesOf, noSettings, samplingOf, wrongValue } from "./settings";
import { beginChat, columnsMax, isBusy, reduceChat, splitReasoning } from "./state";

const asked = reduceChat(beginChat("s"), { tag: "ask", column: 1, turn: 5, prompt: "Hi", at: 100 });

describe("reduceChat", () => {
  test("a turn waits, streams and ends", () => {
    expect(isBusy(asked)).toBe(true);
    const piece = { tag: "pieces", turn: 5, text: "Aye", reasoning: "", pieces: 1 } as const;
    let chat = reduceChat(asked, { ...piece, at: 150 });
    chat = reduceChat(chat, { ...piece, at: 180 });
    const turn = chat.columns[0]?.turns[0];
    expect(turn?.text).toBe("AyeAye");
    expect(turn?.answer).toMatchObject({
      tag: "streaming",
      first_at: 150,
      last_at: 180,
      pieces: 2,
    });
    chat = reduceChat(chat, { tag: "end", turn: 5, answer: { tag: "stopped", pieces: 2 } });
    expect(isBusy(chat)).toBe(false);
    expect(reduceChat(chat, { ...piece, at: 200 }).columns[0]?.turns[0]?.text).toBe("AyeAye");
    expect(reduceChat(chat, { tag: "drop", turn: 5 }).columns[0]?.turns).toEqual([]);
  });

  test("there are at most four columns and at least one", () => {
    let chat = beginChat("s");
    for (let i = 0; i < 9; i++) chat = reduceChat(chat, { tag: "add", session: `s${i}` });
    expect(chat.columns.length).toBe(columnsMax);
    for (const { id } of chat.columns) chat = reduceChat(chat, { tag: "remove", column: id });
    expect(chat.columns.length).toBe(1);
  });
});

test("reasoning between marks is taken out of the text, finished or not", () => {
  const split = (text: string) => splitReasoning({ text, reasoning: "" });
  expect(split("<think>a</think>\n b")).toEqual({ text: "b", reasoning: "a" });
  expect(split("<think>a")).toEqual({ text: "", reasoning: "a" });
  expect(split("no <think>")).toEqual({ text: "no <think>", reasoning: "" });
});

test("what is sent: system prompt, what was said, sampling that was set", () => {
  const turns = asked.columns[0]?.turns ?? [];
  expect(messagesOf({ ...noSettings, system: "S" }, turns, "Q").map((m) => m.role)).toEqual([
    "system",
    "user",
  ]);
  expect(samplingOf({ ...noSettings, temperature: "0" })).toEqual({
    temperature: 0,
    max_tokens: 512,
  });
  expect(wrongValue("top_p", "1.1")).not.toBe("");
  expect(wrongValue("seed", "1.5")).not.toBe("");
  expect(wrongValue("seed", "")).toBe("");
});
