import { useState } from "preact/hooks";
import { Choice } from "../parts/choice";
import { Trouble } from "../parts/trouble";
import { Unavailable } from "../parts/unavailable";
import { csvPath, titleOf, usage, usagePath, type UsageRow, type UsageWay } from "../usage";
import { useAsked } from "../use_asked";

const shownMax = 100;
const shown = (value: number) => value.toLocaleString("en");

function Rows({ rows, by }: { rows: readonly UsageRow[]; by: UsageWay }) {
  const names = ["Requests", "Prompt tokens", "of them cached", "Generated tokens"];
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label="Usage">
      <table class="table">
        <thead>
          <tr>
            {[by === "day" ? "Day (UTC)" : "Key", ...names].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shownMax).map((row) => (
            <tr key={row.key + row.day} data-usage={titleOf(row, by)}>
              <th scope="row">{titleOf(row, by)}</th>
              <td class="num">{shown(row.requests)}</td>
              <td class="num">{shown(row.prompt_tokens)}</td>
              <td class="num">{shown(row.cached_tokens)}</td>
              <td class="num">{shown(row.generated_tokens)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Usage({ when }: { when: string }) {
  const [by, choose] = useState<UsageWay>("key");
  const asked = useAsked(usagePath(by), usage, when);
  return (
    <section class="panel" aria-labelledby="usage">
      <header class="page-head">
        <h2 id="usage">Usage</h2>
        <span class="spring" />
        <a class="button small" href={csvPath(by)} download={`flotilla-usage-by-${by}.csv`}>
          CSV
        </a>
        <Choice
          name="Usage by"
          options={[
            { value: "key", label: "By key" },
            { value: "day", label: "By day" },
          ]}
          chosen={by}
          choose={choose}
        />
      </header>
      {asked.tag === "failed" && <Trouble words={asked.message} again={asked.again} />}
      {asked.tag === "missing" && <Unavailable what="usage" route="GET /admin/usage" />}
      {asked.tag === "known" && asked.value.rows.length === 0 && (
        <p class="muted">Nothing has been asked yet.</p>
      )}
      {asked.tag === "known" && asked.value.rows.length > 0 && (
        <Rows rows={asked.value.rows} by={by} />
      )}
      {asked.tag === "known" && asked.value.rows.length > shownMax && (
        <p class="hint">
          The first {shownMax} of {shown(asked.value.rows.length)} are shown; the CSV has all.
        </p>
      )}
    </section>
  );
}
