import { useEffect, useRef, useState } from "preact/hooks";
import { ask, type Asked } from "../ask";
import {
  isWrong,
  nodeBody,
  type NodeSpec,
  type Spec,
  transports,
  type WrongNode,
  wrongNode,
} from "../cluster_spec";
import { type Tested, tested } from "../nodes";
import { Field } from "../parts/field";
import { Pick } from "../parts/pick";
import { Trouble } from "../parts/trouble";

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

function said({ version, outdated, model, engine, took_ms }: Tested): string {
  const took = `, after ${Math.round(took_ms)} ms`;
  if (model) return `It answers as ${model}${engine && ` (${engine})`}${took}.`;
  return `It answers: flotilla ${version}${outdated ? ", another version than here" : ""}${took}.`;
}

// Asks the node itself, where what was typed is `ready`; what is wrong comes with what would mend it.
function Test({ node, ready }: { node: NodeSpec; ready: () => boolean }) {
  const [asked, show] = useState<Asked<Tested> | null>(null);
  const body = JSON.stringify(nodeBody(node));
  const asking = useRef<AbortController | null>(null);
  // What was said, and what is still being asked, is of what was here before.
  useEffect(() => {
    show(null);
    return () => asking.current?.abort();
  }, [body]);
  async function test() {
    if (!ready()) return;
    asking.current?.abort();
    const { signal } = (asking.current = new AbortController());
    show({ tag: "waiting" });
    const headers = { "content-type": "application/json" };
    const answer = await ask("/admin/nodes/test", tested, { method: "POST", headers, body, signal });
    if (!signal.aborted) show(answer);
  }
  return (
    <div class="node-test">
      <button
        type="button"
        class="button small"
        aria-label={`Test ${node.id}`}
        disabled={asked?.tag === "waiting"}
        onClick={test}
      >
        Test
      </button>
      <div role="status">
        {asked?.tag === "waiting" && <span class="hint">Asking…</span>}
        {asked?.tag === "missing" && <span class="hint">This server cannot test a node.</span>}
        {asked?.tag === "known" && <span class="hint fits">{said(asked.value)}</span>}
      </div>
      {asked?.tag === "failed" && <Trouble words={asked.message} />}
    </div>
  );
}

interface MoreProps {
  node: NodeSpec;
  wrong: WrongNode;
  set: (changed: Partial<NodeSpec>) => void;
}

// What seldom has to be said; open where something in it is wrong.
function More({ node, wrong, set }: MoreProps) {
  const { transport } = node;
  const faulty =
    wrong.user || wrong.port || wrong.threads || wrong.models_dir || wrong.flotilla_path;
  const [open, turn] = useState(false);
  return (
    <details
      class="node-more"
      open={open || faulty !== ""}
      onToggle={(event) => turn(event.currentTarget.open)}
    >
      <summary>More of {node.id}</summary>
      <div class="field-row">
        {transport === "ssh" && (
          <>
            <Field
              label="User"
              hint="Empty: as your ssh config says."
              value={node.user}
              change={(user) => set({ user })}
              wrong={wrong.user}
            />
            <Field
              label="Port"
              hint="Empty: as your ssh config says."
              value={node.port}
              change={(port) => set({ port })}
              wrong={wrong.port}
              numeric
            />
            <Field
              label="Program"
              hint="Where flotilla is there. Empty: it is looked for."
              value={node.flotilla_path}
              change={(flotilla_path) => set({ flotilla_path })}
              wrong={wrong.flotilla_path}
            />
          </>
        )}
        {transport === "http" ? (
          <>
            <Field
              label="API key"
              hint="Sent there, never shown. Empty: as it is, or none."
              value={node.api_key}
              change={(api_key) => set({ api_key })}
              secret
            />
            <Field
              label="Model there"
              hint="Its name on that server. Empty: the first it lists."
              value={node.upstream_model}
              change={(upstream_model) => set({ upstream_model })}
            />
          </>
        ) : (
          <>
            <Field
              label="Models folder there"
              hint="Empty: the cluster's."
              value={node.models_dir}
              change={(models_dir) => set({ models_dir })}
              wrong={wrong.models_dir}
            />
            <Field
              label="Threads"
              hint="Of its processor. Empty: all it may use."
              value={node.threads}
              change={(threads) => set({ threads })}
              wrong={wrong.threads}
              numeric
            />
          </>
        )}
      </div>
    </details>
  );
}

// One node of a cluster: where it is and how it is reached.
export function NodeFields({ node, spec, tried, change, remove }: Props) {
  const wrong = wrongNode(node, spec);
  const { transport } = node;
  const [asked, begin] = useState(false);
  function ready() {
    begin(true);
    return !isWrong(node, spec);
  }
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
          wrong={tried || asked ? wrong.where : ""}
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
      <More node={node} wrong={wrong} set={(changed) => change({ ...node, ...changed })} />
      {transport !== "local" && <Test node={node} ready={ready} />}
    </li>
  );
}
