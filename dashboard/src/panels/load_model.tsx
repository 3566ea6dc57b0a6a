import { useEffect, useRef, useState } from "preact/hooks";
import { type Cluster, loadModel, type LoadRequest, type Outcome } from "../api";
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

export function wrongContext(context: string): string {
  if (context === "") return "";
  return /^[0-9]+$/.test(context) && Number(context) >= 1
    ? ""
    : "A whole number of tokens, or empty.";
}

export function LoadModel({ cluster, close, failed }: Props) {
  const [model, setModel] = useState("");
  const [context, setContext] = useState("");
  const [batch, setBatch] = useState(true);
  const [tried, setTried] = useState(false);
  const [before, setBefore] = useState<Set<string> | null>(null);
  const shown = useRef(true);
  useEffect(() => () => void (shown.current = false), []);
  const wrongModel = model.trim() ? "" : "The path of a .gguf file.";

  const found = useAsked(modelsPath(cluster.id), inventory);
  const known = model.trim() !== "" && wrongContext(context) === "";
  const fit = useAsked(
    known ? preflightPath(cluster.id, model.trim(), batch, context) : null,
    preflight,
    null,
    300,
  );

  // The load shows on the page: the dialog has done its part, and the answer comes later.
  const begun = before !== null && [...aliasesOf(cluster)].some((alias) => !before.has(alias));
  useEffect(() => {
    if (begun) close();
  }, [begun]);

  async function submit(): Promise<Outcome> {
    setTried(true);
    if (wrongModel || wrongContext(context)) return { ok: false, status: 0, message: "" };
    setBefore(aliasesOf(cluster));
    const request: LoadRequest = { model: model.trim(), batch };
    if (context) request.context = Number(context);
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
        hint="The path of a .gguf file, the same on every node or below the models folder."
        value={model}
        change={setModel}
        wrong={tried ? wrongModel : ""}
        placeholder="/models/SmolLM2-135M-Instruct.Q4_1.gguf"
        autofocus
      />
      <label class="choice">
        <input
          type="checkbox"
          checked={batch}
          onChange={(event) => setBatch(event.currentTarget.checked)}
        />
        <span>
          <strong>Batch</strong>
          <span class="hint">Continuous batching in replica mode</span>
        </span>
      </label>
      <Field
        label="Context"
        hint="Most tokens of one request. Empty: the model's own."
        value={context}
        change={setContext}
        wrong={wrongContext(context)}
        placeholder="the model's"
        numeric
      />
      {known && <PreflightTable asked={fit} />}
    </Dialog>
  );
}
