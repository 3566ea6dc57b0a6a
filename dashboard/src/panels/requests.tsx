import { useEffect, useRef, useState } from "preact/hooks";
import { type Fleet } from "../api";
import { Unavailable } from "../parts/unavailable";
import { requests } from "../requests";
import { useAsked } from "../use_asked";
import { RequestTable } from "./request_table";

const atMostEveryMs = 1_000;

// Asked again when the stream tells that something began, ended or moved on.
export function Requests({ fleet }: { fleet: Fleet }) {
  const [count, grow] = useState(0);
  const again = () => grow((before) => before + 1);
  const pools = fleet.clusters.flatMap((cluster) => cluster.pools);
  const work = pools.map((p) => `${p.in_flight}/${p.queue_depth}/${p.tokens_per_s}`).join();
  const pending = useRef(0);
  useEffect(() => {
    pending.current ||= window.setTimeout(() => {
      pending.current = 0;
      again();
    }, atMostEveryMs);
  }, [work]);
  useEffect(() => () => window.clearTimeout(pending.current), []);
  const asked = useAsked("/admin/requests?limit=50", requests, count);
  return (
    <section class="panel" aria-labelledby="requests">
      <h2 id="requests">Requests</h2>
      {asked.tag === "waiting" && <p class="muted">Asking…</p>}
      {asked.tag === "missing" && (
        <Unavailable what="a list of requests" route="GET /admin/requests" />
      )}
      {asked.tag === "failed" && <p class="trouble">{asked.message}</p>}
      {asked.tag === "known" &&
        (asked.value.requests.length > 0 ? (
          <RequestTable entries={asked.value.requests} again={again} />
        ) : (
          <p class="muted">Nobody has asked anything yet.</p>
        ))}
    </section>
  );
}
