// Turns unknown JSON into typed values. A decoder throws DecodeError with the path of the first
// value that is not what it should be; the type of a message is derived from its decoder. What the
// server may say is described by the API's own schemas (api_schema.ts): a decoder that reads a field
// that is not there, or takes less than what may be there, is a type error.
import { type Schemas } from "./api_schema";

export class DecodeError extends Error {
  constructor(path: string, wanted: string, value: unknown) {
    super(
      `${path || "the message"} should be ${wanted}, but is ${JSON.stringify(value) ?? "missing"}`,
    );
  }
}

export interface Decoder<T, Takes = unknown> {
  (value: unknown, path: string): T;
  readonly takes?: (value: Takes) => void; // a type, never a value
}
export type Decoded<D> = D extends (value: unknown, path: string) => infer T ? T : never;
type TakenBy<D> = D extends { readonly takes?: (value: infer I) => void } ? I : never;

export const text: Decoder<string, string> = (value, path) => {
  if (typeof value !== "string") throw new DecodeError(path, "text", value);
  return value;
};

export const number: Decoder<number, number> = (value, path) => {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new DecodeError(path, "a number", value);
  }
  return value;
};

export const flag: Decoder<boolean, boolean> = (value, path) => {
  if (typeof value !== "boolean") throw new DecodeError(path, "true or false", value);
  return value;
};

export function list<T, I>(item: Decoder<T, I>): Decoder<T[], readonly I[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw new DecodeError(path, "a list", value);
    return value.map((entry: unknown, index) => item(entry, `${path}[${index}]`));
  };
}

// A value that the server leaves out, or null, where there is nothing to say.
export function or<T, F, I>(
  inner: Decoder<T, I>,
  fallback: F,
): Decoder<T | F, I | null | undefined> {
  return (value, path) => (value === null || value === undefined ? fallback : inner(value, path));
}

// An object whose members all have such a value, by name.
export function map<T, I>(item: Decoder<T, I>): Decoder<Map<string, T>, Record<string, I>> {
  return (value, path) =>
    new Map(members(value, path).map(([name, entry]) => [name, item(entry, `${path}.${name}`)]));
}

function members(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new DecodeError(path, "an object", value);
  }
  return Object.entries(value);
}

type Fields = Record<string, Decoder<unknown, never>>;
type Read<F> = { [K in keyof F]: Decoded<F[K]> };
type Takes<F> = { [K in keyof F]?: TakenBy<F[K]> };

// Fields that are not named are ignored: a newer server may say more.
export function record<F extends Fields>(fields: F): Decoder<Read<F>, Takes<F>> {
  return (value, path) => {
    const source = new Map(members(value, path));
    const entries = Object.entries(fields).map(([name, decode]) => [
      name,
      decode(source.get(name), path ? `${path}.${name}` : name),
    ]);
    return Object.fromEntries(entries) as Read<F>;
  };
}

// Each decoder takes all that its field may be; there is no decoder for a field that is not there.
type Fitting<F, S> = { [K in keyof F]: K extends keyof S ? Decoder<unknown, S[K]> : never };

// The fields of one of the API's schemas that the page reads.
export function schema<N extends keyof Schemas, F extends Fitting<F, Schemas[N]>>(
  _name: N,
  fields: F,
): Decoder<Read<F>, Takes<F>> {
  return record(fields as F & Fields);
}
