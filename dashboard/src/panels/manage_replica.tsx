import { useState } from "preact/hooks";
import { orderReplica, type Pool, type Replica, type ReplicaAction, replicaActions } from "../api";
import { count } from "../format";
import { Dialog } from "../parts/dialog";
import { isDraining, stateWord } from "../state";

interface Props {
  cluster: string;
  pool: Pool;
  replica: Replica;
  close: () => void;
}

const labels: Record<ReplicaAction, string> = {
  restart: "Restart",
  drain: "Drain",
  resume: "Resume",
};

// What an order will do to those who are being answered.
function effect(action: ReplicaAction, pool: Pool, replica: Replica): string {
  const others = pool.replicas.filter((r) => r.live && r.node !== replica.node).length;
  const work = replica.busy_count;
  const running = count(work, "running request");
  switch (action) {
    case "restart": {
      if (work === 0) return "Its runner ends and a new one loads the model. Nothing runs in it.";
      const elsewhere = others > 0 ? "go on in another replica" : "wait until it is back";
      return `Its runner ends and a new one loads the model. Its ${running} ${elsewhere}.`;
    }
    case "drain":
      return (
        `It takes nothing new${work > 0 ? `; its ${running} may finish` : ""}. ` +
        "It keeps its memory and stays out until it is resumed." +
        (others === 0 ? " No other replica is live: new requests wait." : "")
      );
    case "resume":
      return "It takes new requests again.";
  }
}

// One replica is told what to do; what that means for running requests is said first.
export function ManageReplica({ cluster, pool, replica, close }: Props) {
  const drained = isDraining(replica);
  const [action, choose] = useState<ReplicaAction>(drained ? "resume" : "restart");
  const { node, last_error, log_tail } = replica;
  function showLog() {
    sessionStorage.setItem("flotilla.log", `${pool.alias} on ${node}`);
    location.hash = "#/logs";
  }
  return (
    <Dialog
      title={`Replica ${node}`}
      action={labels[action]}
      danger={action !== "resume"}
      close={close}
      submit={() => orderReplica(cluster, pool.alias, node, action)}
    >
      <p class="muted">
        {pool.alias}, {stateWord(replica)}
        {last_error && `. Last error: ${last_error}`}
      </p>
      <fieldset class="field">
        <legend>What shall it do?</legend>
        {replicaActions.map((name) => (
          <label key={name} class="choice">
            <input
              type="radio"
              name="action"
              checked={name === action}
              onChange={() => choose(name)}
            />
            <span>
              <strong>{labels[name]}</strong>
              <span class="hint">{effect(name, pool, replica)}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {log_tail && (
        <div class="field">
          <strong>Its last words</strong>
          <pre class="last-words" tabIndex={0} aria-label={`Last words of ${node}`}>
            {log_tail}
          </pre>
        </div>
      )}
      <p>
        <button type="button" class="link" onClick={showLog}>
          Its log
        </button>
      </p>
    </Dialog>
  );
}
