import { useEffect, useRef, useState } from "preact/hooks";
import { type Cluster, loadModel, type LoadRequest, type Outcome } from "../api";
import { BatchChoice } from "../parts/batch_choice";
import { Dialog } from "../parts/dialog";
import { Field } from "../parts/field";
import { inventory, modelsPath, preflight, preflightPath } from "../inventory";
import { aliasesOf } from "../state";
import { useAsked } from "../use_asked";
import { ModelPick } from "./model_pick";
import { PreflightTable } from "./preflight";

interface Props {
  cluster: Cluster;
  close: () => void;
  failed: (title: string, detail: string) => void;
}

const contextMax = 1 << 24; // what a preflight adds up

export function wrongContext(context: string): string {
  if (context === "") return "";
  const whole = /^[0-9]+$/.test(context) && Number(context) >= 1;
  if (!whole) return "A whole number of tokens, or empty.";
  return Number(context) <= contextMax ? "" : `At most ${contextMax.toLocaleString("en")} tokens.`;
}

export function wrongAlias(alias: string): string {
  return alias === "" || /^[a-z0-9][a-z0-9.-]{0,63}$/.test(alias)
    ? ""
    : "Small letters, digits, dots and dashes, at most 64, beginning with a letter or digit.";
}

export function LoadModel({ cluster, close, failed }: Props) {
  const [model, setModel] = useState("");
  const [context, setContext] = useState("");
  const [alias, setAlias] = useState("");
  const [ticked, tick] = useState(true);
  const [tried, setTried] = useState(false);
  const [before, setBefore] = useState<Set<string> | null>(null);
  const shown = useRef(true);
  useEffect(() => () => void (shown.current = false), []);
  const replicates = cluster.kind === "replica"; // what batches is a replica
  const batch = replicates && ticked;
  const wrongModel = model.trim() ? "" : "The path of a .gguf file or a model folder.";

  const found = useAsked(modelsPath(cluster.id), inventory);
  const known = model.trim() !== "" && !wrongContext(context) && !wrongAlias(alias);
  const path = known ? preflightPath(cluster.id, model.trim(), batch, context) : null;
  const fit = useAsked(path, preflight, null, 300);

  // The load shows on the page: the dialog has done its part, and the answer comes later.
  const begun = before !== null && [...aliasesOf(cluster)].some((alias) => !before.has(alias));
  useEffect(() => {
    if (begun) close();
  }, [begun]);

  async function submit(): Promise<Outcome> {
    setTried(true);
    if (wrongModel || wrongContext(context) || wrongAlias(alias))
      return { ok: false, status: 0, message: "" };
    setBefore(aliasesOf(cluster));
    const request: LoadRequest = { model: model.trim(), batch };
    if (context) request.context = Number(context);
    if (alias) request.alias = alias;
    const outcome = await loadModel(cluster.id, request);
    // A refusal is for the form; a load that began and then failed is news for the page.
    if (!outcome.ok && !shown.current) {
      failed(`Load of ${request.model} on ${cluster.id} failed`, outcome.message);
    }
    if (!outcome.ok) setBefore(null);
    return outcome;
  }

  return (
    <Dialog
      title={`Load a model on ${cluster.label || cluster.id}`}
      action="Load"
      wide
      close={close}
      submit={submit}
    >
      <ModelPick found={found} chosen={model} choose={setModel} />
      <Field
        label="Model"
        hint="The path of a .gguf file or a model folder, the same on every node or below the models folder."
        value={model}
        change={setModel}
        wrong={tried ? wrongModel : ""}
        placeholder="/models/SmolLM2-135M-Instruct.Q4_1.gguf"
        autofocus
      />
      {replicates && <BatchChoice checked={ticked} change={tick} />}
      <div class="field-row">
        <Field
          label="Context"
          hint="Most tokens of one request. Empty: the model's own."
          value={context}
          change={setContext}
          wrong={wrongContext(context)}
          placeholder="the model's"
          numeric
        />
        <Field
          label="Alias"
          hint="The model name that clients send. Empty: from the file's name."
          value={alias}
          change={setAlias}
          wrong={wrongAlias(alias)}
          placeholder="from the file's name"
        />
      </div>
      {path && <PreflightTable asked={fit} path={path} />}
    </Dialog>
  );
}
