import { type Asked } from "../ask";
import { bytes } from "../format";
import { type Preflight } from "../inventory";
import { Trouble } from "../parts/trouble";

function Rows({ preflight }: { preflight: Preflight }) {
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label="Memory on each node">
      <table class="table stacks">
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Weights</th>
            <th scope="col">KV</th>
            <th scope="col">Buffers</th>
            <th scope="col">Needs</th>
            <th scope="col">Free</th>
            <th scope="col">Verdict</th>
          </tr>
        </thead>
        <tbody>
          {preflight.nodes.map((node) => (
            <tr key={node.node} data-node={node.node}>
              <th scope="row">{node.node}</th>
              <td class="num" data-of="Weights">
                {bytes(node.weights_bytes)}
              </td>
              <td class="num" data-of="KV">
                {bytes(node.kv_bytes)}
              </td>
              <td class="num" data-of="Buffers">
                {bytes(node.buffer_bytes)}
              </td>
              <td class="num" data-of="Needs">
                {bytes(node.need_bytes)}
              </td>
              <td class="num" data-of="Free">
                {bytes(node.free_bytes)}
                {node.on_devices && <span class="muted"> on its devices</span>}
                {node.estimated && <span class="muted"> (needs are estimated)</span>}
                {node.replicas_here > 1 && <span class="muted"> for {node.replicas_here}</span>}
              </td>
              <td class={node.fits ? "matters fits" : "matters trouble"}>
                {node.fits ? "fits" : node.model_present ? "does not fit" : "no model"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Asking = () => <p class="hint">Asking the nodes whether it fits…</p>;

// Whether the load will fit, node by node, before anybody presses the button.
export function PreflightTable({ asked, path }: { asked: Asked<Preflight>; path: string }) {
  switch (asked.tag) {
    case "waiting":
      return <Asking />;
    case "missing":
      return null;
    case "failed":
      if (asked.of !== path) return <Asking />; // it was said of another question
      return <Trouble words={`Not checked: ${asked.message}`} again={asked.again} />;
    case "known": {
      const { fits, limiting_node, nodes } = asked.value;
      const limit = nodes.find((node) => node.node === limiting_node);
      return (
        <section
          class="preflight"
          aria-label="Preflight"
          aria-busy={asked.of !== path}
          data-fits={fits}
        >
          {asked.of !== path && <p class="hint">Asking the nodes again; this is the old answer.</p>}
          <Rows preflight={asked.value} />
          {[...new Set(nodes.map((node) => node.advice))].filter(Boolean).map((advice) => (
            <p class="hint wrong" key={advice}>
              {advice}
            </p>
          ))}
          {!fits && limit && (
            <p class="trouble">
              <strong>{limiting_node}</strong> decides: {limit.verdict}
              {limit.fix && <span class="hint"> {limit.fix}</span>}
            </p>
          )}
          {fits && limit && (
            <p class="hint">
              Tightest on {limiting_node}, with {limit.context} tokens of context for each of{" "}
              {asked.value.width} at once.
            </p>
          )}
        </section>
      );
    }
  }
}
