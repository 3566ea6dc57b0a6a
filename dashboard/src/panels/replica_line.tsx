import { type Replica } from "../api";
import { bytes, count, rate } from "../format";
import { Bar } from "../parts/bar";
import { Hull } from "../parts/hull";
import { type Tone } from "../parts/tip";
import { Wake } from "../parts/wake";
import { isDraining, stateWord, type Track } from "../state";
import { Recovery } from "./pills";

export function toneOf(replica: Replica): Tone {
  if (isDraining(replica)) return "wait";
  if (replica.live) return "live";
  return replica.state === "loading" || replica.state === "starting" ? "wait" : "out";
}

function Progress({ replica }: { replica: Replica }) {
  const { loaded_bytes, model_bytes, node } = replica;
  return (
    <span class="replica-progress">
      <Bar value={loaded_bytes} of={model_bytes} words={`Bytes loaded on ${node}`} />
      <span class="num">
        {model_bytes > 0 ? `${bytes(loaded_bytes)} of ${bytes(model_bytes)}` : bytes(loaded_bytes)}
      </span>
    </span>
  );
}

// One replica: its ship, what it does, and what ails it.
interface Props {
  replica: Replica;
  width: number;
  track: Track;
  ttft_ms: number | null;
  manage: () => void;
}

function Facts({ replica, ttft_ms }: { replica: Replica; ttft_ms: number | null }) {
  const facts = [
    ...(ttft_ms === null ? [] : [`first token ${Math.round(ttft_ms)} ms`]),
    ...(replica.resident_bytes > 0 ? [`${bytes(replica.resident_bytes)} memory`] : []),
    ...(replica.restarts > 0 ? [count(replica.restarts, "restart")] : []),
  ];
  return (
    <span class="muted">
      {facts.join(" · ")}
      {replica.restarts > 0 && replica.last_error && <>, last: {replica.last_error}</>}
    </span>
  );
}

export function ReplicaLine({ replica, width, track, ttft_ms, manage }: Props) {
  const { node, host, live, state, busy_count, queued, tokens_per_s } = replica;
  const ahead = Math.max(0, busy_count - width);
  const busy = Math.min(busy_count, width);
  return (
    <li class="replica" data-replica={node} data-state={state}>
      <span class="replica-who">
        <span class="lamp" data-tone={toneOf(replica)} aria-hidden="true" />
        <strong>{node}</strong>
        {host && host !== node && <span class="muted host">{host}</span>}
      </span>
      <span class="replica-state" data-tone={toneOf(replica)}>
        {stateWord(replica)}
      </span>
      <span class="replica-work">
        <Hull
          width={width}
          busy={live ? busy : 0}
          tone={toneOf(replica)}
          words={`${busy} of ${count(width, "place")} busy`}
        />
        {live && (
          <span class="num">
            {busy}/{width}
            {ahead + queued > 0 && (
              <span class="muted" title="Tokenised early or waiting for this replica">
                {" "}
                +{ahead + queued}
              </span>
            )}
          </span>
        )}
      </span>
      <span class="replica-rate num">
        {live && (
          <>
            <Wake track={track} words={`Tokens per second of ${node}, now ${rate(tokens_per_s)}`} />
            {rate(tokens_per_s)} <small>tokens/s</small>
          </>
        )}
      </span>
      <span class="replica-note">
        {state === "loading" && <Progress replica={replica} />}
        {!live && (
          <span class={toneOf(replica) === "out" ? "trouble" : "muted"}>
            <Recovery replica={replica} />
          </span>
        )}
        {isDraining(replica) && <span class="muted">takes nothing new until it is resumed · </span>}
        {live && <Facts replica={replica} ttft_ms={ttft_ms} />}
      </span>
      <button
        type="button"
        class="button small quiet replica-manage"
        aria-label={`Manage ${node}`}
        onClick={manage}
      >
        Manage
      </button>
    </li>
  );
}
