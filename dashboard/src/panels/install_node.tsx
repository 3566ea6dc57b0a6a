import { useState } from "preact/hooks";
import { type Outcome } from "../api";
import { ask } from "../ask";
import { count } from "../format";
import { bootstrap, nodePath, type NodeShown } from "../nodes";
import { Dialog } from "../parts/dialog";

// Our program goes to a machine; what that does to running requests is said first.
export function InstallNode({ shown, close }: { shown: NodeShown; close: () => void }) {
  const { node, work } = shown;
  const [done, tell] = useState("");
  const busy = work.reduce((sum, { replica }) => sum + replica.busy_count, 0);
  async function install(): Promise<Outcome> {
    if (done) return { ok: true };
    const answer = await ask(nodePath(node.id, "bootstrap"), bootstrap, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    if (answer.tag !== "known") {
      const message = answer.tag === "failed" ? answer.message : "This server cannot do that.";
      return { ok: false, status: 0, message };
    }
    const { version, platform, path, up } = answer.value;
    tell(`Flotilla ${version} (${platform}) is at ${path}${up ? "" : "; its link is not up yet"}.`);
    return { ok: false, status: 0, message: "" }; // it stays open, with what was done
  }
  return (
    <Dialog
      title={`Install Flotilla on ${node.id}`}
      action={done ? "Close" : "Install"}
      tells={done !== ""}
      close={close}
      submit={install}
    >
      {done ? (
        <p class="fits">{done}</p>
      ) : (
        <p>
          The server's own program is copied there, or the one that lies beside it for that
          platform, and the node's agent starts anew.{" "}
          {work.length > 0
            ? `Its ${count(work.length, "replica drains", "replicas drain")} first: ` +
              `${count(busy, "running request")} may finish or go on elsewhere.`
            : "Nothing is loaded there."}
        </p>
      )}
    </Dialog>
  );
}
