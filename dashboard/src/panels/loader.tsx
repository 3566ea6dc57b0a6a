import { type Loading, type LoadingNode } from "../api";
import { bytes, duration } from "../format";
import { Bar } from "../parts/bar";

function NodeProgress({ node }: { node: LoadingNode }) {
  const { loaded_bytes, total_bytes, bytes_per_s, phase, stalled } = node;
  const trouble = stalled || phase === "failed";
  const moves = !trouble && bytes_per_s > 0 && total_bytes > loaded_bytes;
  const left = moves ? (total_bytes - loaded_bytes) / bytes_per_s : null;
  return (
    <li class="load-node" data-trouble={trouble}>
      <strong>{node.node}</strong>
      <Bar value={loaded_bytes} of={total_bytes} words={`Bytes loaded on ${node.node}`} />
      <span class="num">
        {total_bytes > 0 ? `${bytes(loaded_bytes)} of ${bytes(total_bytes)}` : bytes(loaded_bytes)}
      </span>
      <span class="num muted">{bytes_per_s > 0 ? `${bytes(bytes_per_s)}/s` : "–"}</span>
      <span class={trouble ? "trouble" : "muted"}>
        {stalled ? `${phase}, stalled` : phase}
        {left !== null && `, ${duration(left)} to go`}
      </span>
    </li>
  );
}

// A load in progress: every node's bytes, rate and whether it still moves.
export function Loader({ loading }: { loading: Loading }) {
  return (
    <article class="loader" data-loading={loading.alias}>
      <header>
        <h3>{loading.alias}</h3>
        <span class="pill" data-tone="wait">
          loading
        </span>
        <span class="muted num">
          {duration(loading.elapsed_s)} so far
          {" · "}
          {loading.eta_s ? `about ${duration(loading.eta_s)} to go` : "waiting"}
        </span>
      </header>
      <ul>
        {loading.nodes.map((node) => (
          <NodeProgress key={node.node} node={node} />
        ))}
      </ul>
    </article>
  );
}
