import { type Fleet } from "../api";
import { rate } from "../format";
import { Wake } from "../parts/wake";
import { fleetTrack, totals, type Tracks } from "../state";

function Dial({ value, of, label }: { value: string; of?: string; label: string }) {
  return (
    <div class="dial">
      <dd>
        {value}
        {of && <span class="of">/{of}</span>}
      </dd>
      <dt>{label}</dt>
    </div>
  );
}

// The whole fleet in one strip: what can be read from across the room.
export function Summary({ fleet, tracks }: { fleet: Fleet; tracks: Tracks }) {
  const all = totals(fleet);
  const speed = rate(all.tokens_per_s);
  return (
    <section class="summary" aria-label="The whole fleet">
      <dl>
        <Dial value={speed} label="tokens/s" />
        <Dial value={String(all.in_flight)} label="in flight" />
        <Dial value={String(all.queue_depth)} label="in queue" />
        <Dial value={String(all.replicas_live)} of={String(all.replicas_total)} label="replicas" />
        <Dial value={String(all.nodes_up)} of={String(all.nodes_total)} label="nodes" />
      </dl>
      <Wake
        track={tracks.by.get(fleetTrack) ?? []}
        words={`Tokens per second of the last two minutes, now ${speed}`}
      />
    </section>
  );
}
