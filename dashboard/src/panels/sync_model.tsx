import { useState } from "preact/hooks";
import { syncModel } from "../api";
import { bytes, count } from "../format";
import { type FoundModel, wanting } from "../inventory";
import { Dialog } from "../parts/dialog";

interface Props {
  cluster: string;
  model: FoundModel;
  close: () => void;
}

// A model goes to the nodes that are chosen; where another file has its name that one is replaced.
export function SyncModel({ cluster, model, close }: Props) {
  const all = wanting(model);
  const [chosen, choose] = useState<readonly string[]>(model.missing);
  const [tried, setTried] = useState(false);
  const none = tried && chosen.length === 0;
  const turn = (node: string) =>
    choose(chosen.includes(node) ? chosen.filter((n) => n !== node) : [...chosen, node]);
  return (
    <Dialog
      title={`Copy ${model.model}`}
      action={`Copy to ${count(chosen.length, "node")}`}
      close={close}
      submit={async () => {
        setTried(true);
        if (chosen.length === 0) return { ok: false, status: 0, message: "" };
        return syncModel(cluster, model.model, [...chosen]);
      }}
    >
      <p class="muted">
        {bytes(model.size_bytes)} for each. The file takes its place when all of it has come and its
        hash is right; a copy that is broken off goes on from there the next time.
      </p>
      <fieldset class="field">
        <legend>To which nodes?</legend>
        {all.map((node) => (
          <label key={node} class="choice">
            <input
              type="checkbox"
              checked={chosen.includes(node)}
              aria-invalid={none}
              onChange={() => turn(node)}
            />
            <span>
              <strong>{node}</strong>
              <span class="hint">
                {model.missing.includes(node)
                  ? "lacks it"
                  : "has another file of this name, which is replaced"}
              </span>
            </span>
          </label>
        ))}
        {none && (
          <p class="hint wrong" role="alert">
            Choose at least one node.
          </p>
        )}
      </fieldset>
    </Dialog>
  );
}
