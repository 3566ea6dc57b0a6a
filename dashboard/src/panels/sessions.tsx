import { useState } from "preact/hooks";
import { send } from "../api";
import { count as counted, duration } from "../format";
import { type Session, sessions } from "../operations";
import { Dialog } from "../parts/dialog";
import { Trouble } from "../parts/trouble";
import { useAsked } from "../use_asked";

const shownMax = 50;

function ForgetSession({ session, close }: { session: Session; close: () => void }) {
  const { id, alias, node, tokens } = session;
  return (
    <Dialog
      title="Forget this conversation's home?"
      action="Forget"
      danger
      close={close}
      submit={() => send("DELETE", `/admin/sessions/${encodeURIComponent(id)}`)}
    >
      <p>
        <code>{id}</code> of {alias} is at home on {node}. A request of it that runs goes on; its
        next one goes to the least busy replica, which may have to read its{" "}
        {counted(tokens, "token")} anew.
      </p>
    </Dialog>
  );
}

// Conversations and the replica that holds each. A server without the route shows no such panel.
export function Sessions({ generation }: { generation: number }) {
  const [count, grow] = useState(0);
  const [leaving, leave] = useState<Session | null>(null);
  const asked = useAsked("/admin/sessions", sessions, `${generation}/${count}`);
  if (asked.tag === "failed") return <Trouble words={asked.message} again={asked.again} />;
  if (asked.tag !== "known") return null;
  const known = asked.value.sessions;
  return (
    <section class="panel" aria-labelledby="sessions">
      <header class="page-head">
        <h2 id="sessions">Sessions</h2>
        <span class="muted num">{known.length}</span>
        <span class="spring" />
        <button type="button" class="button small" onClick={() => grow(count + 1)}>
          Look again
        </button>
      </header>
      {known.length === 0 && <p class="muted">No conversation has a home at the moment.</p>}
      {known.length > 0 && (
        <div class="table-box" tabIndex={0} role="group" aria-label="Sessions">
          <table class="table">
            <thead>
              <tr>
                {["Session", "Model", "Home", "Tokens", "Idle"].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
                <td />
              </tr>
            </thead>
            <tbody>
              {known.slice(0, shownMax).map((session) => (
                <tr key={session.id} data-session={session.id}>
                  <th scope="row">
                    <code>{session.id}</code>
                  </th>
                  <td>{session.alias}</td>
                  <td>{session.node}</td>
                  <td class="num">{session.tokens}</td>
                  <td class="num">{duration(session.idle_s)}</td>
                  <td>
                    <button
                      type="button"
                      class="button small"
                      aria-label={`Forget ${session.id}`}
                      onClick={() => leave(session)}
                    >
                      Forget
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {known.length > shownMax && <p class="hint">The first {shownMax} of them are shown.</p>}
      {leaving && (
        <ForgetSession
          session={leaving}
          close={() => {
            leave(null);
            grow(count + 1);
          }}
        />
      )}
    </section>
  );
}
