// One question to the server, and the answer as a tagged value.
import { request } from "./access";
import { problemOf } from "./api";
import { type Decoder } from "./decode";

export type Asked<T> =
  | { tag: "waiting" }
  | { tag: "known"; value: T; of?: string } // the path that was asked
  | { tag: "missing" } // this server has no such route
  | { tag: "failed"; message: string; of?: string; again?: () => void };

export async function ask<T>(
  path: string,
  decode: Decoder<T, never>,
  init: RequestInit = {},
): Promise<Exclude<Asked<T>, { tag: "waiting" }>> {
  try {
    const answer = await request(path, { cache: "no-store", ...init });
    // A thing that is not there is a failure in words; a route that is not there is an old server.
    if (answer.status === 404 || answer.status === 405) {
      const message = await problemOf(answer);
      const route = answer.status === 405 || message.startsWith("there is nothing at");
      return route ? { tag: "missing" } : { tag: "failed", message };
    }
    if (!answer.ok) return { tag: "failed", message: await problemOf(answer) };
    const body: unknown = await answer.json();
    return { tag: "known", value: decode(body, "") };
  } catch (error) {
    const known = error instanceof Error && !(error instanceof TypeError);
    const message = known ? error.message : "The server did not answer. Is it still running?";
    return { tag: "failed", message };
  }
}
