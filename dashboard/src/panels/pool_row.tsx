import { useId } from "preact/hooks";
import { type Pool } from "../api";
import { basename, rate } from "../format";
import { Wake } from "../parts/wake";
import { type Track, widthOf } from "../state";
import { Pills } from "./pills";
import { ReplicaLine } from "./replica_line";

interface Props {
  pool: Pool;
  track: Track;
  trackOf: (node: string) => Track;
  ttftOf: (node: string) => number | null;
  open: boolean;
  toggle: () => void;
  reload: () => void;
  unload: () => void;
  manage: (node: string) => void;
}

function Figure({ name, value, label }: { name: string; value: string; label: string }) {
  return (
    <span class="figure" data-part={name}>
      <span class="num">{value}</span>
      <small>{label}</small>
    </span>
  );
}

// One pool; opens to one line a replica.
export function PoolRow(props: Props) {
  const { pool, track, trackOf, ttftOf, open, toggle, reload, unload, manage } = props;
  const lines = useId();
  const speed = rate(pool.tokens_per_s);
  return (
    <article class="pool" data-pool={pool.alias} data-open={open}>
      <div class="pool-head">
        <button
          type="button"
          class="icon-button disclose"
          aria-expanded={open}
          aria-controls={lines}
          aria-label={`Replicas of ${pool.alias}`}
          onClick={toggle}
        >
          <svg viewBox="0 0 20 20" aria-hidden="true">
            <path d="M7 4l6 6-6 6" />
          </svg>
        </button>
        <div class="pool-name">
          <h3>{pool.alias}</h3>
          <span class="muted model" title={pool.model}>
            {basename(pool.model)}
          </span>
        </div>
        <Pills pool={pool} />
        <Wake track={track} words={`Tokens per second of the last two minutes, now ${speed}`} />
        <div class="figures">
          <Figure name="tokens-per-s" value={speed} label="tokens/s" />
          <Figure name="in-flight" value={String(pool.in_flight)} label="in flight" />
          <Figure name="queue-depth" value={String(pool.queue_depth)} label="in queue" />
        </div>
        <span class="pool-orders">
          <button
            type="button"
            class="button small quiet"
            aria-label={`Reload ${pool.alias}`}
            onClick={reload}
          >
            Reload
          </button>
          <button
            type="button"
            class="button small quiet"
            aria-label={`Unload ${pool.alias}`}
            onClick={unload}
          >
            Unload
          </button>
        </span>
      </div>
      {open && (
        <ul class="replicas" id={lines} aria-label={`Replicas of ${pool.alias}`}>
          {pool.replicas.map((replica) => (
            <ReplicaLine
              key={replica.index}
              replica={replica}
              width={widthOf(pool)}
              track={trackOf(replica.node)}
              ttft_ms={ttftOf(replica.node)}
              manage={() => manage(replica.node)}
            />
          ))}
        </ul>
      )}
    </article>
  );
}
