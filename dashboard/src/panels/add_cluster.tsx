import { useState } from "preact/hooks";
import { type NewCluster, putCluster } from "../api";
import { Dialog } from "../parts/dialog";
import { Field } from "../parts/field";

const idForm = /^[a-z0-9][a-z0-9-]{0,40}$/;
const nodesMax = 64;

export function wrongId(id: string, taken: readonly string[]): string {
  if (!idForm.test(id)) {
    return "Small letters, digits and dashes, at most 41, beginning with a letter or digit.";
  }
  return taken.includes(id) ? `There is a cluster '${id}' already.` : "";
}

export function wrongCount(nodes: string): string {
  const value = Number(nodes);
  const good = /^[0-9]+$/.test(nodes) && value >= 1 && value <= nodesMax;
  return good ? "" : `A whole number from 1 to ${nodesMax}.`;
}

export function wrongFolder(folder: string): string {
  return folder.trim() === "" || folder.trim().startsWith("/")
    ? ""
    : "A whole path, beginning with a slash, or empty.";
}

export function AddCluster({ taken, close }: { taken: readonly string[]; close: () => void }) {
  const [id, setId] = useState("");
  const [label, setLabel] = useState("");
  const [nodes, setNodes] = useState("2");
  const [folder, setFolder] = useState("");
  const [tried, setTried] = useState(false);
  const wrong = { id: wrongId(id, taken), nodes: wrongCount(nodes) };

  async function submit() {
    setTried(true);
    if (wrong.id || wrong.nodes || wrongFolder(folder))
      return { ok: false as const, status: 0, message: "" };
    const made: NewCluster = {
      id,
      label: label.trim(),
      nodes: Number(nodes),
      models_dir: folder.trim(),
    };
    return putCluster(made);
  }

  return (
    <Dialog title="Add Argo cluster" action="Add cluster" close={close} submit={submit}>
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
      <Field
        label="Models folder"
        hint="Its models are offered when you load. Empty: you give whole paths."
        value={folder}
        change={setFolder}
        wrong={wrongFolder(folder)}
        placeholder="/models"
      />
    </Dialog>
  );
}
