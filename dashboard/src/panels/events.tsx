import { momentOf } from "../format";
import { type Event } from "../operations";

// Who did what, the newest first.
export function Events({ audit }: { audit: readonly Event[] | null }) {
  return (
    <section class="panel" aria-labelledby="events">
      <h2 id="events">Events</h2>
      {audit === null && <p class="muted">The server has not told yet.</p>}
      {audit?.length === 0 && <p class="muted">Nobody has changed anything yet.</p>}
      {audit && audit.length > 0 && (
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
              {audit.map((event, index) => (
                <tr key={index}>
                  <td class="num">{momentOf(event.at_unix_ms)}</td>
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
