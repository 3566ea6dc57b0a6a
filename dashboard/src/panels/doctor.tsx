import { type Asked } from "../ask";
import { type Finding } from "../nodes";
import { Trouble } from "../parts/trouble";

const tones: Record<string, string> = { ok: "plain", warning: "wait", failure: "out" };

// What the server found when it looked at everything, the worst first.
export function Doctor({ asked }: { asked: Asked<{ ok: boolean; findings: Finding[] }> }) {
  if (asked.tag === "missing") return null;
  if (asked.tag === "waiting") return <p class="panel muted">Looking at every node…</p>;
  if (asked.tag === "failed") return <Trouble words={asked.message} again={asked.again} />;
  const order = Object.keys(tones).reverse();
  const rows = [...asked.value.findings].sort(
    (a, b) => order.indexOf(a.level) - order.indexOf(b.level),
  );
  return (
    <section class="panel" data-doctor={asked.value.ok} aria-label="What the doctor says">
      <h2>{asked.value.ok ? "Nothing keeps it from working" : "Something is wrong"}</h2>
      <div class="table-box" tabIndex={0} role="group" aria-label="Findings">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Looked at</th>
              <th scope="col">Found</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.cluster}/${row.node}/${row.check}`} data-level={row.level}>
                <th scope="row">
                  {row.node} <span class="muted">{row.cluster}</span>
                </th>
                <td>
                  <span class="pill" data-tone={tones[row.level] ?? "out"}>
                    {row.level}
                  </span>{" "}
                  {row.check}
                </td>
                <td class="wraps">
                  {row.detail}
                  {row.fix && <p class="hint">{row.fix}</p>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
