import { useState } from "preact/hooks";
import { nodeBody, type NodeSpec, transports, wrongNode, type Spec } from "../cluster_spec";
import { send } from "../api";
import { Field } from "../parts/field";
import { Pick } from "../parts/pick";

interface Props {
  node: NodeSpec;
  spec: Spec;
  tried: boolean;
  change: (node: NodeSpec) => void;
  remove: () => void;
}

const whereHints: Record<string, string> = {
  ssh: "Reached with your own OpenSSH; no port is opened.",
  http: "An engine that runs already: llama-server, vLLM, Ollama…",
};

function Test({ node }: { node: NodeSpec }) {
  const [said, say] = useState<{ ok: boolean; words: string } | null>(null);
  async function test() {
    say({ ok: true, words: "Asking…" });
    const outcome = await send("POST", "/admin/nodes/test", nodeBody(node));
    if (outcome.ok) say({ ok: true, words: "It answers." });
    else if (outcome.status === 404) say({ ok: false, words: "This server cannot test a node." });
    else say({ ok: false, words: outcome.message });
  }
  return (
    <p class="node-test" role="status">
      <button type="button" class="button small" onClick={test}>
        Test
      </button>
      {said && <span class={said.ok ? "hint" : "hint wrong"}>{said.words}</span>}
    </p>
  );
}

// One node of a cluster: where it is and how it is reached.
export function NodeFields({ node, spec, tried, change, remove }: Props) {
  const wrong = wrongNode(node, spec);
  const { transport } = node;
  return (
    <li class="node-fields" data-node={node.id}>
      <Field
        label="Node"
        hint="Its id"
        value={node.id}
        change={(id) => change({ ...node, id })}
        wrong={wrong.id}
      />
      <Pick
        label="Reached by"
        options={transports}
        chosen={transport}
        choose={(chosen) => change({ ...node, transport: chosen })}
      />
      {transport === "local" ? (
        <p class="hint">A replica on this machine.</p>
      ) : (
        <Field
          label={transport === "ssh" ? "Host" : "Address"}
          hint={whereHints[transport] ?? ""}
          value={transport === "ssh" ? node.host : node.url}
          change={(value) =>
            change(transport === "ssh" ? { ...node, host: value } : { ...node, url: value })
          }
          wrong={tried ? wrong.where : ""}
          placeholder={transport === "ssh" ? "mini-a.lan" : "http://mini-a.lan:8080/v1"}
        />
      )}
      <button
        type="button"
        class="button small quiet"
        aria-label={`Take out ${node.id}`}
        onClick={remove}
      >
        Take out
      </button>
      {transport !== "local" && <Test node={node} />}
    </li>
  );
}
