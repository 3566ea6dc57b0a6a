import { useEffect, useState } from "preact/hooks";
import { type Cluster, type Outcome, send } from "../api";
import { ask } from "../ask";
import {
  bodyOf,
  isWrong,
  newNode,
  type NodeSpec,
  type Spec,
  spec as decodeSpec,
  wrongFolder,
  wrongLabel,
} from "../cluster_spec";
import { count } from "../format";
import { Dialog } from "../parts/dialog";
import { Field } from "../parts/field";
import { Trouble } from "../parts/trouble";
import { NodeFields } from "./node_fields";

interface Props {
  cluster: Cluster;
  close: () => void;
  remove: () => void;
}

// What its going does to those who are being answered there.
function leavingWords({ pools }: Cluster, node: string): string {
  const replicas = pools.flatMap((pool) => pool.replicas.filter((r) => r.node === node));
  const running = replicas.reduce((sum, replica) => sum + replica.busy_count, 0);
  if (replicas.length === 0) return "nothing is loaded on it.";
  const ends = replicas.length === 1 ? "its replica then ends." : "its replicas then end.";
  return running > 0
    ? `${count(running, "running request")} may finish first, up to the drain limit; ${ends}`
    : `no request runs on it; ${ends}`;
}

// Nodes added while models are loaded get a replica of each; nodes taken out drain first.
export function EditCluster({ cluster, close, remove }: Props) {
  const { id, label } = cluster;
  const path = `/admin/clusters/${encodeURIComponent(id)}`;
  const [spec, set] = useState<Spec | null>(null);
  const [unread, setUnread] = useState("");
  const [tried, setTried] = useState(false);
  useEffect(() => {
    void ask(path, decodeSpec).then((asked) => {
      if (asked.tag === "known") set(asked.value);
      else setUnread(asked.tag === "failed" ? asked.message : "This server cannot show it.");
    });
  }, []);

  async function submit(): Promise<Outcome> {
    setTried(true);
    const quiet = { ok: false as const, status: 0, message: "" };
    if (!spec || wrongFolder(spec.models_dir) || wrongLabel(spec.label)) return quiet;
    if (spec.nodes.length === 0 || spec.nodes.some((n) => isWrong(n, spec))) return quiet;
    return send("PUT", path, bodyOf(spec));
  }
  const leaving = spec ? cluster.nodes.filter((n) => !spec.nodes.some((s) => s.id === n.id)) : [];
  const changeNode = (index: number, node: NodeSpec) =>
    spec && set({ ...spec, nodes: spec.nodes.map((old, at) => (at === index ? node : old)) });

  return (
    <Dialog title={`Edit ${label || id}`} action="Save" wide close={close} submit={submit}>
      {unread && <Trouble words={unread} />}
      {spec && (
        <>
          <Field
            label="Label"
            hint="How people call it."
            value={spec.label}
            change={(value) => set({ ...spec, label: value })}
            wrong={wrongLabel(spec.label)}
          />
          <Field
            label="Models folder"
            hint="Its models are offered when you load."
            value={spec.models_dir}
            change={(value) => set({ ...spec, models_dir: value })}
            wrong={wrongFolder(spec.models_dir)}
          />
          <ul class="node-list" aria-label="Nodes">
            {spec.nodes.map((node, index) => (
              <NodeFields
                key={index}
                node={node}
                spec={spec}
                tried={tried}
                change={(changed) => changeNode(index, changed)}
                remove={() => set({ ...spec, nodes: spec.nodes.filter((n) => n !== node) })}
              />
            ))}
          </ul>
          {spec.nodes.length === 0 && (
            <p class="hint wrong" role="alert">
              A cluster has at least one node.
            </p>
          )}
          <p class="hint">
            A node that is added gets a replica of each loaded model; one that is taken out finishes
            its running requests first.
          </p>
          {leaving.map((node) => (
            <p class="trouble" key={node.id}>
              <strong>{node.id}</strong> leaves: {leavingWords(cluster, node.id)}
            </p>
          ))}
          <p class="edit-more">
            <button
              type="button"
              class="button small"
              onClick={() => set({ ...spec, nodes: [...spec.nodes, newNode(spec)] })}
            >
              Add a node
            </button>
            <span class="spring" />
            <button type="button" class="link trouble" onClick={remove}>
              Remove this cluster…
            </button>
          </p>
        </>
      )}
    </Dialog>
  );
}
