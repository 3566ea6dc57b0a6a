import { bytes, rate } from "../format";
import { type NodeShown, telemetry, telemetryPath } from "../nodes";
import { Bar } from "../parts/bar";
import { useAsked } from "../use_asked";
import { nodeTone } from "./cluster";

function Facts({ id, when }: { id: string; when: string }) {
  const asked = useAsked(telemetryPath(id), telemetry, when);
  if (asked.tag !== "known") return null;
  const { memory_total, memory_available, cpu_load, cores, temperature_c, link_ms } = asked.value;
  const used = memory_total !== null ? memory_total - (memory_available ?? 0) : 0;
  return (
    <dl class="facts">
      {memory_total !== null && (
        <div>
          <dt>Memory</dt>
          <dd class="num">
            <Bar value={used} of={memory_total} words={`Memory used on ${id}`} />
            {bytes(used)} of {bytes(memory_total)}
          </dd>
        </div>
      )}
      {cpu_load !== null && cores !== null && (
        <div>
          <dt>Processor</dt>
          <dd class="num">
            <Bar value={cpu_load} of={cores} words={`Cores busy on ${id}`} />
            {cpu_load.toFixed(1)} of {cores} cores
          </dd>
        </div>
      )}
      {temperature_c !== null && (
        <div>
          <dt>Temperature</dt>
          <dd class="num">{Math.round(temperature_c)} °C</dd>
        </div>
      )}
      {link_ms !== null && (
        <div>
          <dt>Link</dt>
          <dd class="num">{link_ms.toFixed(1)} ms</dd>
        </div>
      )}
    </dl>
  );
}

export function NodeCard({ shown, generation }: { shown: NodeShown; generation: number }) {
  const { node, clusters, work } = shown;
  const tone = nodeTone(node);
  const loads = work.map(({ pool, replica }) => `${pool.alias}${replica.live}`).join();
  return (
    <article class="panel node-card" data-node={node.id}>
      <header>
        <span class="lamp" data-tone={tone} aria-hidden="true" />
        <h3>{node.label || node.id}</h3>
        <span class="muted">
          {node.label && node.label !== node.id && <code>{node.id} </code>}
          {node.transport} · {clusters.join(", ")}
        </span>
        <span class="spring" />
        <span class="replica-state" data-tone={tone}>
          {node.state}
        </span>
      </header>
      {node.reason && <p class="trouble">{node.reason}</p>}
      <Facts id={node.id} when={`${generation}/${node.state}/${loads}`} />
      <ul class="node-work">
        {work.map(({ pool, replica }) => (
          <li key={pool.alias}>
            <strong>{pool.alias}</strong>
            <span class={replica.live ? "muted" : "trouble"}>{replica.state}</span>
            <span class="num muted">{bytes(replica.model_bytes)}</span>
            <span class="num">
              {rate(replica.tokens_per_s)} <small>tokens/s</small>
            </span>
          </li>
        ))}
        {work.length === 0 && <li class="muted">Nothing is loaded here.</li>}
      </ul>
    </article>
  );
}
