import { useState } from "preact/hooks";
import { cancelTransfer } from "../api";
import { bytes, duration } from "../format";
import { Bar } from "../parts/bar";
import { Dialog } from "../parts/dialog";
import { type Transfer, type TransferNode } from "../transfers";

const shownAtMost = 5;
const tones: Record<string, string> = { running: "wait", failed: "out", cancelled: "out" };

function Progress({ node }: { node: TransferNode }) {
  const { done_bytes, total_bytes, bytes_per_s, eta_s, state, error } = node;
  const failed = state === "failed";
  return (
    <li class="load-node" data-trouble={failed} data-node={node.node}>
      <strong>{node.node}</strong>
      <Bar value={done_bytes} of={total_bytes} words={`Bytes copied to ${node.node}`} />
      <span class="num">
        {bytes(done_bytes)} of {bytes(total_bytes)}
      </span>
      <span class="num muted">{bytes_per_s > 0 ? `${bytes(bytes_per_s)}/s` : "–"}</span>
      <span class={failed ? "trouble" : "muted"}>
        {error || state}
        {eta_s !== null && `, ${duration(eta_s)} to go`}
      </span>
    </li>
  );
}

// Copies under way, and how the last ones ended.
export function Transfers({ transfers }: { transfers: readonly Transfer[] }) {
  const [ending, end] = useState<Transfer | null>(null);
  return (
    <>
      {transfers.slice(0, shownAtMost).map((transfer) => (
        <article key={transfer.id} class="panel transfer" data-transfer={transfer.id}>
          <header class="transfer-head">
            <h3>{transfer.model}</h3>
            <span class="muted">
              from {transfer.source}, {transfer.cluster}
            </span>
            <span class="pill" data-tone={tones[transfer.state] ?? "plain"}>
              {transfer.state}
            </span>
            <span class="spring" />
            {transfer.state === "running" && (
              <button
                type="button"
                class="button small"
                aria-label={`Cancel the copy of ${transfer.model}`}
                onClick={() => end(transfer)}
              >
                Cancel
              </button>
            )}
          </header>
          <ul>
            {transfer.nodes.map((node) => (
              <Progress key={node.node} node={node} />
            ))}
          </ul>
        </article>
      ))}
      {ending && (
        <Dialog
          title={`Cancel the copy of ${ending.model}?`}
          action="Cancel the copy"
          back="Let it go on"
          danger
          close={() => end(null)}
          submit={() => cancelTransfer(ending.id)}
        >
          <p>
            What has come stays on the nodes, and the next copy goes on from there. No request is
            touched: a model is loaded only where all of it is.
          </p>
        </Dialog>
      )}
    </>
  );
}
