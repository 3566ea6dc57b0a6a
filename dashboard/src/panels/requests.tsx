import { type Request } from "../requests";
import { RequestTable } from "./request_table";

// Those under way and the last ones that ended, as the stream tells them.
export function Requests({ requests }: { requests: readonly Request[] | null }) {
  return (
    <section class="panel" aria-labelledby="requests">
      <h2 id="requests">Requests</h2>
      {requests === null && <p class="muted">The server has not told yet.</p>}
      {requests?.length === 0 && <p class="muted">Nobody has asked anything yet.</p>}
      {requests && requests.length > 0 && <RequestTable entries={requests} />}
    </section>
  );
}
