import { useState } from "preact/hooks";
import { duration, secondOf } from "../format";
import { Trouble } from "../parts/trouble";
import { isUnderWay, type Request, request } from "../requests";
import { useAsked } from "../use_asked";
import { CancelRequest } from "./cancel_request";

const ms = (value: number) => (value < 10_000 ? `${Math.round(value)} ms` : duration(value / 1000));

// Asked again as the request goes on: `when` is what it does and where.
function Timeline({ id, when }: { id: string; when: string }) {
  const asked = useAsked(`/admin/requests/${encodeURIComponent(id)}`, request, when);
  if (asked.tag === "waiting") return <p class="muted">Asking…</p>;
  if (asked.tag === "missing") return <p class="muted">No timeline is kept.</p>;
  if (asked.tag === "failed") return <Trouble words={asked.message} again={asked.again} />;
  return (
    <ol class="timeline">
      {asked.value.timeline.map((moment, index) => (
        <li key={index}>
          <span class="num">{ms(moment.at_ms)}</span> <strong>{moment.what}</strong> {moment.detail}
        </li>
      ))}
    </ol>
  );
}

function Row({ entry, cancel }: { entry: Request; cancel: () => void }) {
  const [open, setOpen] = useState(false);
  const live = isUnderWay(entry);
  return (
    <>
      <tr data-request={entry.id} data-live={live}>
        <th scope="row">
          <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
            <time class="num">{secondOf(entry.arrived_unix_ms)}</time>
            <span class="spoken"> timeline of {entry.id}</span>
          </button>
        </th>
        <td data-of="Model">{entry.model || "–"}</td>
        <td data-of="From">{entry.key || "–"}</td>
        <td class="matters" data-of="Replica">
          {entry.node || "–"}
        </td>
        <td class={live || entry.status === 200 ? "matters" : "matters trouble"}>
          {live ? entry.phase : entry.end || entry.status}
          {entry.resumed && " · resumed"}
        </td>
        <td class="num" data-of="TTFT">
          {entry.ttft_ms === null ? "–" : ms(entry.ttft_ms)}
        </td>
        <td class="num" data-of="Took">
          {ms(entry.took_ms)}
        </td>
        <td class="num" data-of="Tokens">
          {entry.prompt_tokens} → {entry.completion_tokens}
          {entry.cached_tokens > 0 && <span class="muted"> ({entry.cached_tokens} cached)</span>}
        </td>
        <td class="acts">
          {live && (
            <button
              type="button"
              class="button small"
              aria-label={`Cancel ${entry.id}`}
              onClick={cancel}
            >
              Cancel
            </button>
          )}
        </td>
      </tr>
      {open && (
        <tr>
          <td colSpan={9}>
            <code>{entry.id}</code>
            {entry.peer && <span class="muted"> from {entry.peer}</span>}
            <Timeline id={entry.id} when={`${entry.phase}/${entry.node}`} />
          </td>
        </tr>
      )}
    </>
  );
}

export function RequestTable({ entries }: { entries: readonly Request[] }) {
  const [ending, end] = useState<Request | null>(null);
  const sorted = [...entries.filter(isUnderWay), ...entries.filter((entry) => !isUnderWay(entry))];
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label="Requests">
      <table class="table stacks">
        <thead>
          <tr>
            {["Came", "Model", "From", "Replica", "State", "TTFT", "Took", "Tokens"].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {sorted.map((entry) => (
            <Row key={entry.id} entry={entry} cancel={() => end(entry)} />
          ))}
        </tbody>
      </table>
      {ending && <CancelRequest entry={ending} close={() => end(null)} />}
    </div>
  );
}
