import { useState } from "preact/hooks";
import { type Outcome, type Pool, reloadModel } from "../api";
import { count } from "../format";
import { BatchChoice } from "../parts/batch_choice";
import { Dialog } from "../parts/dialog";
import { Field } from "../parts/field";

interface Props {
  cluster: string;
  pool: Pool;
  close: () => void;
  failed: (title: string, detail: string) => void;
}

// The same alias with another file or another way of batching. It takes as long as its loads do, so
// the dialog closes at once and the row shows how it goes.
export function ReloadModel({ cluster, pool, close, failed }: Props) {
  const { alias, in_flight } = pool;
  const [model, setModel] = useState(pool.model);
  const [batch, setBatch] = useState(pool.batch);
  const wrong = model.trim() ? "" : "The path of a .gguf file or a model folder.";

  function submit(): Promise<Outcome> {
    if (wrong) return Promise.resolve({ ok: false, status: 0, message: "" });
    void reloadModel(cluster, { alias, model: model.trim(), batch }).then((outcome) => {
      if (!outcome.ok) failed(`Reload of ${alias} failed`, outcome.message);
    });
    return Promise.resolve({ ok: true });
  }

  return (
    <Dialog title={`Reload ${alias}`} action="Reload" wide close={close} submit={submit}>
      <p>
        New replicas come up beside the old ones where memory allows, else node by node; requests
        that come meanwhile wait for them.{" "}
        {in_flight > 0
          ? `${count(in_flight, "running request")} may finish first; none fails.`
          : "No request is running."}
      </p>
      <Field
        label="Model"
        hint="Another file under the same alias, or the same."
        value={model}
        change={setModel}
        wrong={wrong}
      />
      <BatchChoice checked={batch} change={setBatch} />
    </Dialog>
  );
}
