import { useState } from "preact/hooks";
import { send } from "../api";
import { ask, type Asked } from "../ask";
import { nodePath, type Trust, trust } from "../nodes";
import { Dialog } from "../parts/dialog";
import { Trouble } from "../parts/trouble";
import { useOnce } from "../use_asked";

const question = {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: "{}",
};

// The host key that a machine shows, stored only when somebody says that it is the right one.
export function TrustNode({ node, close }: { node: string; close: () => void }) {
  const [shown, show] = useState<Asked<Trust>>({ tag: "waiting" });
  useOnce(async () => show(await ask(nodePath(node, "trust"), trust, question)));
  const known = shown.tag === "known" ? shown.value : null;
  const fingerprint = known?.fingerprints[0]?.split(" ")[0] ?? "";
  const store = known !== null && !known.known && fingerprint !== "";
  return (
    <Dialog
      title={`Host key of ${node}`}
      action={store ? "Store it" : "Close"}
      danger={store && known.changed}
      tells={!store}
      close={close}
      submit={async () =>
        store ? send("POST", nodePath(node, "trust"), { fingerprint }) : { ok: true }
      }
    >
      {shown.tag === "waiting" && <p class="hint">Asking {node}…</p>}
      {shown.tag === "failed" && <Trouble words={shown.message} />}
      {known && (
        <>
          <p>{known.host} shows:</p>
          <ul>
            {known.fingerprints.map((one) => (
              <li key={one}>
                <code class="fingerprint">{one}</code>
              </li>
            ))}
          </ul>
          {known.known && (
            <p class="fits">
              That is the one in <code>{known.file}</code>.
            </p>
          )}
          {known.changed && (
            <p class="trouble">
              <code>{known.file}</code> has another one: it was installed anew, or something stands
              between.
            </p>
          )}
          {store && (
            <p class="hint">
              Compare it with what{" "}
              <code>ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub</code> says on that machine.
              It goes to <code>{known.file}</code>.
            </p>
          )}
        </>
      )}
    </Dialog>
  );
}
