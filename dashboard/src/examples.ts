// Requests that work as they stand, against this server.

export interface Example {
  name: string;
  code: string;
}

const question = "Name three kinds of ships.";

// A small model may go on until its context is full: an example must end.
const longest = 200;

// Whether /v1 wants a key, and /admin the admin's token: then they are taken from the environment.
export interface Guarded {
  keys: boolean;
  login: boolean;
}

const bearer = (name: string) => `  -H "authorization: Bearer $${name}"`;

export function curl(endpoint: string, alias: string, { keys }: Guarded): string {
  const body = JSON.stringify({
    model: alias,
    messages: [{ role: "user", content: question }],
    max_tokens: longest,
    stream: true,
  });
  return [
    `curl -N ${endpoint}/chat/completions \\`,
    ...(keys ? [`${bearer("FLOTILLA_API_KEY")} \\`] : []),
    `  -H 'content-type: application/json' \\`,
    `  -d '${body}'`,
  ].join("\n");
}

function python(endpoint: string, alias: string, { keys }: Guarded): string {
  const key = keys ? 'os.environ["FLOTILLA_API_KEY"]' : '"none"';
  return `${keys ? "import os\n" : ""}from openai import OpenAI

client = OpenAI(base_url="${endpoint}", api_key=${key})
stream = client.chat.completions.create(
    model="${alias}",
    messages=[{"role": "user", "content": "${question}"}],
    max_tokens=${longest},
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()`;
}

function typescript(endpoint: string, alias: string, { keys }: Guarded): string {
  const key = keys ? 'process.env["FLOTILLA_API_KEY"]' : '"none"';
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${endpoint}", apiKey: ${key} });
const stream = await client.chat.completions.create({
  model: "${alias}",
  messages: [{ role: "user", content: "${question}" }],
  max_tokens: ${longest},
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}`;
}

export function examples(endpoint: string, alias: string, guarded: Guarded): Example[] {
  return [
    { name: "curl", code: curl(endpoint, alias, guarded) },
    { name: "Python", code: python(endpoint, alias, guarded) },
    { name: "TypeScript", code: typescript(endpoint, alias, guarded) },
  ];
}

export function administration(server: string, cluster: string, { login }: Guarded): Example[] {
  const by = login ? [`${bearer("FLOTILLA_ADMIN_TOKEN")} \\`] : [];
  const ask = (flags: string, path: string) =>
    [`curl ${flags}${server}${path}`, ...(login ? [bearer("FLOTILLA_ADMIN_TOKEN")] : [])].join(
      " \\\n",
    );
  const load = JSON.stringify({ model: "/models/MODEL.gguf", batch: true });
  return [
    {
      name: "Load a model",
      code: [
        `curl -X POST ${server}/admin/clusters/${cluster}/load \\`,
        ...by,
        `  -H 'content-type: application/json' \\`,
        `  -d '${load}'`,
      ].join("\n"),
    },
    { name: "See how it goes", code: ask("", `/admin/clusters/${cluster}/status`) },
    { name: "Follow everything", code: ask("-N ", "/admin/stream") },
  ];
}
