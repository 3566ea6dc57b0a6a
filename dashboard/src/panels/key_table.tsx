import { type Key } from "../keys";
import { type UsageRow } from "../usage";

const bound = (value: number) => (value > 0 ? value.toLocaleString("en") : "–");

function expiry({ expires_unix_s }: Key): string {
  if (expires_unix_s === 0) return "never";
  const day = new Date(expires_unix_s * 1000).toISOString().slice(0, 10);
  return expires_unix_s * 1000 < Date.now() ? `expired ${day}` : day;
}

interface Props {
  known: readonly Key[];
  used: readonly UsageRow[]; // by key
  remove: (key: Key) => void;
}

const columns = ["Name", "Models", "Weight", "Requests/min", "Tokens/min", "At once", "Cache group"];
const figures = ["Expires", "In flight", "Requests", "Tokens"];

export function KeyTable({ known, used, remove }: Props) {
  const usageOf = (id: string) => used.find((row) => row.key === id);
  const tokensOf = (row: UsageRow | undefined) =>
    row ? row.prompt_tokens + row.generated_tokens : 0;
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label="Keys">
      <table class="table stacks">
        <thead>
          <tr>
            {[...columns, ...figures].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {known.map((key) => (
            <tr key={key.id} data-key={key.name}>
              <th scope="row" title={key.id}>
                {key.name}
              </th>
              <td class="wraps" data-of="Models">
                {key.models.join(", ") || "all"}
              </td>
              <td class="num" data-of="Weight">
                {key.weight}
              </td>
              <td class="num" data-of="Requests/min">
                {bound(key.requests_per_min)}
              </td>
              <td class="num" data-of="Tokens/min">
                {bound(key.tokens_per_min)}
              </td>
              <td class="num" data-of="At once">
                {bound(key.max_in_flight)}
              </td>
              <td data-of="Cache group">{key.cache_group || "–"}</td>
              <td data-of="Expires">{expiry(key)}</td>
              <td class="num" data-of="In flight">
                {key.in_flight}
              </td>
              <td class="num" data-of="Requests">
                {(usageOf(key.id)?.requests ?? 0).toLocaleString("en")}
              </td>
              <td class="num" data-of="Tokens">
                {tokensOf(usageOf(key.id)).toLocaleString("en")}
              </td>
              <td class="acts">
                <button
                  type="button"
                  class="button small"
                  aria-label={`Remove ${key.name}`}
                  onClick={() => remove(key)}
                >
                  Remove
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
