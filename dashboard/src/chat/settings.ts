// What the playground sends beside the words. An empty field leaves it to the server.
import { type Turn } from "./state";

export interface Settings {
  system: string;
  temperature: string;
  top_p: string;
  top_k: string;
  max_tokens: string;
  seed: string;
}

export const noSettings: Settings = {
  system: "",
  temperature: "",
  top_p: "",
  top_k: "",
  max_tokens: "512",
  seed: "",
};

interface Range {
  min: number;
  max: number;
  whole: boolean;
  words: string;
}

export const ranges: Record<Exclude<keyof Settings, "system">, Range> = {
  temperature: { min: 0, max: 2, whole: false, words: "A number from 0 to 2, or empty." },
  top_p: { min: 0, max: 1, whole: false, words: "A number from 0 to 1, or empty." },
  top_k: { min: 0, max: 1_000_000, whole: true, words: "A whole number, 0 for all, or empty." },
  max_tokens: { min: 1, max: 10_000_000, whole: true, words: "A whole number from 1, or empty." },
  seed: { min: 0, max: 2 ** 53 - 1, whole: true, words: "A whole number, or empty." },
};

export function wrongValue(name: keyof typeof ranges, value: string): string {
  const { min, max, whole, words } = ranges[name];
  if (value.trim() === "") return "";
  const parsed = Number(value);
  const good = Number.isFinite(parsed) && parsed >= min && parsed <= max;
  return good && (!whole || Number.isInteger(parsed)) ? "" : words;
}

export const names = Object.keys(ranges) as (keyof typeof ranges)[];

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

// A turn that failed without a word is no part of the conversation.
export function messagesOf(settings: Settings, turns: readonly Turn[], prompt: string): Message[] {
  const said = turns.flatMap((turn): Message[] =>
    turn.text
      ? [
          { role: "user", content: turn.prompt },
          { role: "assistant", content: turn.text },
        ]
      : [],
  );
  const system: Message[] = settings.system.trim()
    ? [{ role: "system", content: settings.system }]
    : [];
  return [...system, ...said, { role: "user", content: prompt }];
}

export function samplingOf(settings: Settings): Record<string, number> {
  return Object.fromEntries(
    names
      .filter((name) => settings[name].trim() !== "")
      .map((name) => [name, Number(settings[name])]),
  );
}
