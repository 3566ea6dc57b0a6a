// Turns unknown JSON into typed values. A decoder throws DecodeError with the path of the first
// value that is not what it should be; the type of a message is derived from its decoder, so there
// is one source for both.

export class DecodeError extends Error {
  constructor(path: string, wanted: string, value: unknown) {
    super(
      `${path || "the message"} should be ${wanted}, but is ${JSON.stringify(value) ?? "missing"}`,
    );
  }
}

export type Decoder<T> = (value: unknown, path: string) => T;
export type Decoded<D> = D extends Decoder<infer T> ? T : never;

export const text: Decoder<string> = (value, path) => {
  if (typeof value !== "string") throw new DecodeError(path, "text", value);
  return value;
};

export const number: Decoder<number> = (value, path) => {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new DecodeError(path, "a number", value);
  }
  return value;
};

export const flag: Decoder<boolean> = (value, path) => {
  if (typeof value !== "boolean") throw new DecodeError(path, "true or false", value);
  return value;
};

export function list<T>(item: Decoder<T>): Decoder<T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw new DecodeError(path, "a list", value);
    return value.map((entry: unknown, index) => item(entry, `${path}[${index}]`));
  };
}

// A value that the server leaves out, or null, where there is nothing to say.
export function or<T, F>(inner: Decoder<T>, fallback: F): Decoder<T | F> {
  return (value, path) => (value === null || value === undefined ? fallback : inner(value, path));
}

type Fields = Record<string, Decoder<unknown>>;

// Fields that are not named are ignored: a newer server may say more.
export function record<F extends Fields>(fields: F): Decoder<{ [K in keyof F]: Decoded<F[K]> }> {
  return (value, path) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new DecodeError(path, "an object", value);
    }
    const source = new Map<string, unknown>(Object.entries(value));
    const entries = Object.entries(fields).map(([name, decode]) => [
      name,
      decode(source.get(name), path ? `${path}.${name}` : name),
    ]);
    return Object.fromEntries(entries) as { [K in keyof F]: Decoded<F[K]> };
  };
}
