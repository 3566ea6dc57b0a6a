// Requests that work as they stand, against this server.

export interface Example {
  name: string;
  code: string;
}

const question = "Name three kinds of ships.";

export function curl(endpoint: string, alias: string): string {
  const body = JSON.stringify({
    model: alias,
    messages: [{ role: "user", content: question }],
    stream: true,
  });
  return [
    `curl -N ${endpoint}/chat/completions \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '${body}'`,
  ].join("\n");
}

function python(endpoint: string, alias: string): string {
  return `from openai import OpenAI

client = OpenAI(base_url="${endpoint}", api_key="none")
stream = client.chat.completions.create(
    model="${alias}",
    messages=[{"role": "user", "content": "${question}"}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()`;
}

function typescript(endpoint: string, alias: string): string {
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${endpoint}", apiKey: "none" });
const stream = await client.chat.completions.create({
  model: "${alias}",
  messages: [{ role: "user", content: "${question}" }],
  stream: true,
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}`;
}

export function examples(endpoint: string, alias: string): Example[] {
  return [
    { name: "curl", code: curl(endpoint, alias) },
    { name: "Python", code: python(endpoint, alias) },
    { name: "TypeScript", code: typescript(endpoint, alias) },
  ];
}

export function administration(server: string, cluster: string): Example[] {
  const load = JSON.stringify({ model: "/models/MODEL.gguf", batch: true });
  return [
    {
      name: "Load a model",
      code: [
        `curl -X POST ${server}/admin/clusters/${cluster}/load \\`,
        `  -H 'content-type: application/json' \\`,
        `  -d '${load}'`,
      ].join("\n"),
    },
    { name: "See how it goes", code: `curl ${server}/admin/clusters/${cluster}/status` },
    { name: "Follow everything", code: `curl -N ${server}/admin/stream` },
  ];
}
