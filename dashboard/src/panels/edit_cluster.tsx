import { useEffect, useState } from "preact/hooks";
import { type Cluster, type Outcome, send } from "../api";
import { ask } from "../ask";
import {
  bodyOf,
  newNode,
  type NodeSpec,
  type Spec,
  spec as decodeSpec,
  wrongNode,
} from "../cluster_spec";
import { Dialog } from "../parts/dialog";
import { Field } from "../parts/field";
import { wrongFolder } from "./add_cluster";
import { NodeFields } from "./node_fields";

interface Props {
  cluster: Cluster;
  close: () => void;
  remove: () => void;
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
    if (!spec || wrongFolder(spec.models_dir)) return quiet;
    if (spec.nodes.some((n) => wrongNode(n, spec).id || wrongNode(n, spec).where)) return quiet;
    return send("PUT", path, bodyOf(spec));
  }
  const changeNode = (index: number, node: NodeSpec) =>
    spec && set({ ...spec, nodes: spec.nodes.map((old, at) => (at === index ? node : old)) });

  return (
    <Dialog title={`Edit ${label || id}`} action="Save" wide close={close} submit={submit}>
      {unread && <p class="hint wrong">{unread}</p>}
      {spec && (
        <>
          <Field
            label="Label"
            hint="How people call it."
            value={spec.label}
            change={(value) => set({ ...spec, label: value })}
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
          <p class="hint">
            A node that is added gets a replica of each loaded model; one that is taken out finishes
            its running requests first.
          </p>
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
