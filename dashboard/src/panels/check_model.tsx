import { type FoundModel, preflight, preflightPath } from "../inventory";
import { Dialog } from "../parts/dialog";
import { Trouble } from "../parts/trouble";
import { useAsked } from "../use_asked";

interface Props {
  cluster: string;
  model: FoundModel;
  close: () => void;
}

// The file's hash on each node: the same name and size may still be another file.
export function CheckModel({ cluster, model, close }: Props) {
  const asked = useAsked(preflightPath(cluster, model.model, false, ""), preflight);
  return (
    <Dialog
      title={`Compare ${model.model}`}
      action="Close"
      tells
      wide
      close={close}
      submit={() => Promise.resolve({ ok: true })}
    >
      {asked.tag === "waiting" && <p class="hint">Asking the nodes…</p>}
      {asked.tag === "failed" && <Trouble words={asked.message} again={asked.again} />}
      {asked.tag === "missing" && <p class="hint">This server cannot compare.</p>}
      {asked.tag === "known" && (
        <div class="table-box" tabIndex={0} role="group" aria-label="Hashes">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col">SHA-256</th>
                <th scope="col">What it says</th>
              </tr>
            </thead>
            <tbody>
              {asked.value.nodes.map((node) => (
                <tr key={node.node} data-node={node.node}>
                  <th scope="row">{node.node}</th>
                  <td>
                    {node.hash ? (
                      <code title={node.hash}>{node.hash.slice(0, 12)}</code>
                    ) : (
                      <span class="muted">not known yet</span>
                    )}
                  </td>
                  <td class={node.fits ? "wraps" : "wraps trouble"}>
                    {node.differs || node.verdict}
                    {node.fix && <p class="hint">{node.fix}</p>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Dialog>
  );
}
