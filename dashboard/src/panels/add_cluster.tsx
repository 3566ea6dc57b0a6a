import { useState } from "preact/hooks";
import {
  isWrong,
  newNode,
  type NewCluster,
  type NodeSpec,
  putCluster,
  specOf,
  wrongFolder,
  wrongLabel,
} from "../cluster_spec";
import { Dialog } from "../parts/dialog";
import { Field } from "../parts/field";
import { NodeFields } from "./node_fields";

const idForm = /^[a-z0-9][a-z0-9-]{0,40}$/;
const nodesMax = 64;
const numberSize = 3; // a local node's label has its number too

export function wrongId(id: string, taken: readonly string[]): string {
  if (!idForm.test(id)) {
    return "Small letters, digits and dashes, at most 41, beginning with a letter or digit.";
  }
  return taken.includes(id) ? `There is a cluster '${id}' already.` : "";
}

// With machines of its own a cluster needs none here.
export function wrongCount(nodes: string, others = 0): string {
  const least = others > 0 ? 0 : 1;
  const value = Number(nodes);
  const good = /^[0-9]+$/.test(nodes) && value >= least && value <= nodesMax;
  return good ? "" : `A whole number from ${least} to ${nodesMax}.`;
}

export function AddCluster({ taken, close }: { taken: readonly string[]; close: () => void }) {
  const [id, setId] = useState("");
  const [label, setLabel] = useState("");
  const [nodes, setNodes] = useState("2");
  const [folder, setFolder] = useState("");
  const [others, setOthers] = useState<readonly NodeSpec[]>([]);
  const [tried, setTried] = useState(false);
  const wrong = {
    id: wrongId(id, taken),
    label: wrongLabel(label, numberSize),
    nodes: wrongCount(nodes, others.length),
    folder: wrongFolder(folder),
  };
  const made: NewCluster = {
    id,
    label: label.trim(),
    models_dir: folder.trim(),
    local: wrong.nodes ? 0 : Number(nodes),
    others: [...others],
  };
  const spec = specOf(made);

  async function submit() {
    setTried(true);
    const bad = Object.values(wrong).some(Boolean) || others.some((n) => isWrong(n, spec));
    if (bad) return { ok: false as const, status: 0, message: "" };
    return putCluster(made);
  }

  return (
    <Dialog title="Add Argo cluster" action="Add cluster" wide close={close} submit={submit}>
      <Field
        label="Id"
        hint="Used in addresses and commands; it cannot be changed later."
        value={id}
        change={setId}
        wrong={tried || id.length > 40 ? wrong.id : ""}
        placeholder="local"
        autofocus
      />
      <Field
        label="Label"
        hint="How people call it."
        value={label}
        change={setLabel}
        wrong={wrong.label}
        placeholder="Local machine"
      />
      <fieldset class="field">
        <legend>Kind</legend>
        <label class="choice">
          <input type="radio" name="kind" checked readOnly />
          <span>
            <strong>replica</strong>
            <span class="hint">1 copy per node, concurrent throughput</span>
          </span>
        </label>
      </fieldset>
      <Field
        label="Local nodes"
        hint="Each runs one replica on this machine and needs memory for a whole copy."
        value={nodes}
        change={setNodes}
        wrong={wrong.nodes}
        numeric
      />
      {others.length > 0 && (
        <ul class="node-list" aria-label="Other machines">
          {others.map((node, index) => (
            <NodeFields
              key={index}
              node={node}
              spec={spec}
              tried={tried}
              change={(changed) => setOthers(others.map((n, at) => (at === index ? changed : n)))}
              remove={() => setOthers(others.filter((n) => n !== node))}
            />
          ))}
        </ul>
      )}
      <p>
        <button
          type="button"
          class="button small"
          onClick={() => setOthers([...others, newNode({ ...spec, id: id || "node" }, "ssh")])}
        >
          Add a machine
        </button>
      </p>
      <Field
        label="Models folder"
        hint="Its models are offered when you load. Empty: you give whole paths."
        value={folder}
        change={setFolder}
        wrong={wrong.folder}
        placeholder="/models"
      />
    </Dialog>
  );
}
