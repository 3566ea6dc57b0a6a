import { useState } from "preact/hooks";
import { type Fleet } from "../api";
import { type Key, keys, type MadeKey } from "../keys";
import { AddKey } from "../panels/add_key";
import { KeyTable } from "../panels/key_table";
import { ShowMadeKey } from "../panels/made_key";
import { RemoveKey } from "../panels/remove_key";
import { Usage } from "../panels/usage";
import { Trouble } from "../parts/trouble";
import { Unavailable } from "../parts/unavailable";
import { usage, usagePath } from "../usage";
import { useAsked } from "../use_asked";

type Open =
  | { tag: "nothing" }
  | { tag: "add" }
  | { tag: "made"; made: MadeKey }
  | { tag: "remove"; key: Key };

// Who may use the models, how much, and how much they did.
export function KeysPage({ fleet, generation }: { fleet: Fleet; generation: number }) {
  const [count, grow] = useState(0);
  const [open, set] = useState<Open>({ tag: "nothing" });
  const when = `${generation}/${count}`;
  const asked = useAsked("/admin/keys", keys, when);
  const used = useAsked(usagePath("key"), usage, when);
  const known = asked.tag === "known" ? asked.value.keys : [];
  const loaded = fleet.clusters.flatMap((cluster) => cluster.pools.map((pool) => pool.alias));
  const changed = () => grow((before) => before + 1);
  // A dialog closes itself after its work, when the next one may be open.
  const close = (tag: Open["tag"]) => () =>
    set((before) => (before.tag === tag ? { tag: "nothing" } : before));

  return (
    <div class="page">
      <header class="page-head">
        <h2>API keys</h2>
        <span class="spring" />
        <button type="button" class="button small" onClick={changed}>
          Look again
        </button>
        <button
          type="button"
          class="button primary"
          disabled={asked.tag !== "known"}
          onClick={() => set({ tag: "add" })}
        >
          Create a key
        </button>
      </header>
      {asked.tag === "waiting" && <p class="muted">Asking…</p>}
      {asked.tag === "failed" && <Trouble words={asked.message} again={asked.again} />}
      {asked.tag === "missing" && <Unavailable what="API keys" route="GET /admin/keys" />}
      {asked.tag === "known" && (
        <section class="panel" aria-label="API keys">
          {known.length === 0 ? (
            <p class="muted">
              There is no key: requests from this machine are served without one, and no others. As
              soon as there is one, every request needs a key.
            </p>
          ) : (
            <KeyTable
              known={known}
              used={used.tag === "known" ? used.value.rows : []}
              remove={(key) => set({ tag: "remove", key })}
            />
          )}
        </section>
      )}
      {asked.tag === "known" && <Usage when={when} />}
      {open.tag === "add" && (
        <AddKey
          taken={known.map((key) => key.name)}
          loaded={loaded}
          made={(made) => {
            set({ tag: "made", made });
            changed();
          }}
          close={close("add")}
        />
      )}
      {open.tag === "made" && <ShowMadeKey made={open.made} close={close("made")} />}
      {open.tag === "remove" && (
        <RemoveKey
          known={open.key}
          last={known.length === 1}
          close={close("remove")}
          removed={changed}
        />
      )}
    </div>
  );
}
