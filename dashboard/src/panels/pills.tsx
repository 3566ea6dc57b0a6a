import { type ComponentChildren, Fragment } from "preact";
import { type Pool, type Replica } from "../api";
import { count } from "../format";
import { Countdown } from "../parts/clock";
import { Tip } from "../parts/tip";
import { isDraining, stateWord, widthOf } from "../state";

// Why a replica is out and what happens next, as one sentence with a running countdown.
export function Recovery({ replica }: { replica: Replica }) {
  const { state, last_error, attempts, next_retry_in_s } = replica;
  const parts: ComponentChildren[] = [last_error || state];
  if (attempts > 0) parts.push(`attempt ${attempts}`);
  else if (next_retry_in_s !== null) parts.push("no attempt yet");
  if (next_retry_in_s !== null)
    parts.push(
      <>
        next try <Countdown seconds={next_retry_in_s} />
      </>,
    );
  return (
    <>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 && " · "}
          {part}
        </Fragment>
      ))}
    </>
  );
}

function ReplicaPill({ pool }: { pool: Pool }) {
  const { replicas_live, replicas_total, replicas } = pool;
  const drained = replicas.filter(isDraining);
  if (replicas_live === replicas_total && drained.length > 0) {
    return (
      <Tip tone="wait" label={`replica, ${drained.length} drained`}>
        {drained.map((replica) => (
          <span key={replica.index} class="tip-line">
            <strong>{replica.node}</strong> is {stateWord(replica)}: it takes nothing new until it is
            resumed.
          </span>
        ))}
      </Tip>
    );
  }
  if (replicas_live === replicas_total) {
    return (
      <Tip label="replica">
        {count(replicas_total, "copy", "copies")} of the model, one per node, all live.
        {pool.exact_resume && " A stream whose replica dies goes on bit for bit on another."}
      </Tip>
    );
  }
  const tone = replicas_live === 0 ? "out" : "wait";
  return (
    <Tip tone={tone} label={`replica ${replicas_live}/${replicas_total}`}>
      {replicas
        .filter((replica) => !replica.live)
        .map((replica) => (
          <span key={replica.index} class="tip-line">
            <strong>{replica.node}</strong> is out: <Recovery replica={replica} />
          </span>
        ))}
    </Tip>
  );
}

function BatchPill({ pool }: { pool: Pool }) {
  if (pool.batch) {
    return (
      <Tip label="· batch">
        Each replica runs up to {count(widthOf(pool), "sequence")} together.
        {pool.batch_reason && ` ${pool.batch_reason}`}
      </Tip>
    );
  }
  // Batch that was not asked for needs no pill; one that was refused says why.
  if (!pool.batch_reason) return null;
  return (
    <Tip tone="wait" label="· no batch">
      One request at a time in each replica: {pool.batch_reason}
    </Tip>
  );
}

export function Pills({ pool }: { pool: Pool }) {
  return (
    <span class="pills" data-part="pills">
      <ReplicaPill pool={pool} /> <BatchPill pool={pool} />
    </span>
  );
}
