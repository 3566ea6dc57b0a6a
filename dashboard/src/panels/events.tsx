import { type Fleet } from "../api";
import { events } from "../operations";
import { Unavailable } from "../parts/unavailable";
import { useAsked } from "../use_asked";

// Who did what. Asked again when the fleet's shape changes, since somebody did that.
export function Events({ fleet, generation }: { fleet: Fleet; generation: number }) {
  const shape = fleet.clusters
    .map((c) => `${c.id}:${c.nodes.length}:${c.pools.map((p) => `${p.alias}/${p.generation}`)}`)
    .join();
  const asked = useAsked("/admin/events?limit=100", events, `${shape}/${generation}`, 100);
  return (
    <section class="panel" aria-labelledby="events">
      <h2 id="events">Events</h2>
      {asked.tag === "waiting" && <p class="muted">Asking…</p>}
      {asked.tag === "missing" && <Unavailable what="an audit" route="GET /admin/events" />}
      {asked.tag === "failed" && <p class="trouble">{asked.message}</p>}
      {asked.tag === "known" && asked.value.events.length === 0 && (
        <p class="muted">Nobody has changed anything yet.</p>
      )}
      {asked.tag === "known" && asked.value.events.length > 0 && (
        <div class="table-box" tabIndex={0} role="group" aria-label="Events">
          <table class="table">
            <thead>
              <tr>
                {["When", "Who", "What", "Answer", "Detail"].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {asked.value.events.map((event, index) => (
                <tr key={index}>
                  <td class="num">{new Date(event.at_unix_ms).toLocaleString()}</td>
                  <td>{event.who}</td>
                  <td>{event.action}</td>
                  <td class={event.status >= 400 ? "num trouble" : "num"}>{event.status || ""}</td>
                  <td class="wraps">{event.detail}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
