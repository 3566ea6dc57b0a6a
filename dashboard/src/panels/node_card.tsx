import { bytes, rate } from "../format";
import { type Gpu, type NodeShown, type Telemetry } from "../nodes";
import { Bar } from "../parts/bar";
import { nodeTone } from "./cluster";

function GpuFact({ gpu, of }: { gpu: Gpu; of: string }) {
  const { memory_used_bytes, memory_total_bytes, busy_percent, temperature_c, power_w } = gpu;
  const more = [
    ...(busy_percent === null ? [] : [`${Math.round(busy_percent)} % busy`]),
    ...(temperature_c === null ? [] : [`${Math.round(temperature_c)} °C`]),
    ...(power_w === null ? [] : [`${Math.round(power_w)} W`]),
  ];
  return (
    <div data-gpu={gpu.index}>
      <dt>
        Device {gpu.index}, {gpu.name}
      </dt>
      <dd class="num">
        <Bar
          value={memory_used_bytes}
          of={memory_total_bytes}
          words={`Memory used on device ${gpu.index} of ${of}`}
        />
        {bytes(memory_used_bytes)} of {bytes(memory_total_bytes)}
        {more.length > 0 && <span class="muted"> · {more.join(" · ")}</span>}
      </dd>
    </div>
  );
}

function Facts({ telemetry }: { telemetry: Telemetry }) {
  const { node: id, memory_total_bytes, memory_available_bytes, cpu_load, cores } = telemetry;
  const { round_trip_ms, version, platform, outdated, replicas, gpus } = telemetry;
  const used = memory_total_bytes - memory_available_bytes;
  const ours = replicas.reduce((sum, replica) => sum + replica.rss_bytes, 0);
  return (
    <dl class="facts">
      <div>
        <dt>Memory</dt>
        <dd class="num">
          <Bar value={used} of={memory_total_bytes} words={`Memory used on ${id}`} />
          {bytes(used)} of {bytes(memory_total_bytes)}
          {ours > 0 && <span class="muted"> · {bytes(ours)} in runners</span>}
        </dd>
      </div>
      <div>
        <dt>Processor</dt>
        <dd class="num">
          <Bar value={cpu_load} of={cores} words={`Cores busy on ${id}`} />
          {cpu_load.toFixed(1)} of {cores} cores
        </dd>
      </div>
      {gpus.map((gpu) => (
        <GpuFact key={gpu.index} gpu={gpu} of={id} />
      ))}
      <div>
        <dt>Link</dt>
        <dd class="num">{round_trip_ms.toFixed(1)} ms</dd>
      </div>
      <div>
        <dt>Program</dt>
        <dd>
          {version} {platform}
          {outdated && <span class="trouble"> · another version than the server's</span>}
        </dd>
      </div>
    </dl>
  );
}

interface Props {
  shown: NodeShown;
  telemetry: Telemetry | null;
  trust: () => void;
  install: () => void;
}

export function NodeCard({ shown, telemetry, trust, install }: Props) {
  const { node, clusters, work } = shown;
  const tone = nodeTone(node);
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
      {telemetry && telemetry.memory_total_bytes > 0 && <Facts telemetry={telemetry} />}
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
      {node.transport === "ssh" && (
        <p class="node-orders">
          <button
            type="button"
            class="button small quiet"
            aria-label={`Host key of ${node.id}`}
            onClick={trust}
          >
            Host key
          </button>
          <button
            type="button"
            class="button small quiet"
            aria-label={`Install Flotilla on ${node.id}`}
            onClick={install}
          >
            Install Flotilla
          </button>
        </p>
      )}
    </article>
  );
}
