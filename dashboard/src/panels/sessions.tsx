import { useState } from "preact/hooks";
import { send } from "../api";
import { duration } from "../format";
import { sessions } from "../operations";
import { Copy } from "../parts/copy";
import { useAsked } from "../use_asked";

const shownMax = 50;

// Conversations and the replica that holds each. A server without the route shows no such panel.
export function Sessions({ generation }: { generation: number }) {
  const [count, grow] = useState(0);
  const [refused, refuse] = useState("");
  const asked = useAsked("/admin/sessions", sessions, `${generation}/${count}`);
  if (asked.tag !== "known") return null;
  const known = asked.value.sessions;
  async function forget(id: string) {
    const outcome = await send("DELETE", `/admin/sessions/${encodeURIComponent(id)}`);
    refuse(outcome.ok ? "" : outcome.message);
    grow(count + 1);
  }
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
      {refused && (
        <p class="refusal" role="alert">
          {refused} <Copy words={refused} what="the error" />
        </p>
      )}
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
                      onClick={() => forget(session.id)}
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
    </section>
  );
}
