import { useState } from "preact/hooks";
import { type Fleet } from "../api";
import { type FoundModel, inventories } from "../inventory";
import { CheckModel } from "../panels/check_model";
import { ModelTable } from "../panels/model_table";
import { SyncModel } from "../panels/sync_model";
import { Transfers } from "../panels/transfers";
import { Trouble } from "../parts/trouble";
import { Unavailable } from "../parts/unavailable";
import { useAsked } from "../use_asked";

type Open =
  | { tag: "none" }
  | { tag: "sync"; cluster: string; model: FoundModel }
  | { tag: "check"; cluster: string; model: FoundModel };

// Which node has which model file, and copies of them to those that lack one.
export function ModelsPage({ fleet, generation }: { fleet: Fleet; generation: number }) {
  const [open, show] = useState<Open>({ tag: "none" });
  const close = () => show({ tag: "none" });
  // A copy that has ended changes what the nodes have.
  const ended = fleet.transfers.filter((transfer) => transfer.state !== "running").length;
  const ids = fleet.clusters.map((cluster) => cluster.id).join();
  const asked = useAsked("/admin/models", inventories, `${generation}/${ended}/${ids}`);
  return (
    <div class="page">
      <header class="page-head">
        <h2>Models</h2>
        <span class="muted">Files in the nodes' models folders.</span>
      </header>
      <Transfers transfers={fleet.transfers} />
      {asked.tag === "waiting" && <p class="muted">Looking on the nodes…</p>}
      {asked.tag === "failed" && <Trouble words={asked.message} again={asked.again} />}
      {asked.tag === "missing" && <Unavailable what="models" route="GET /admin/models" />}
      {asked.tag === "known" &&
        asked.value.clusters.map((found) => (
          <ModelTable
            key={found.cluster}
            found={found}
            sync={(model) => show({ tag: "sync", cluster: found.cluster, model })}
            check={(model) => show({ tag: "check", cluster: found.cluster, model })}
          />
        ))}
      {asked.tag === "known" && asked.value.clusters.length === 0 && (
        <p class="panel muted">Models come with the nodes of a cluster: add one.</p>
      )}
      {open.tag === "sync" && (
        <SyncModel cluster={open.cluster} model={open.model} close={close} />
      )}
      {open.tag === "check" && (
        <CheckModel cluster={open.cluster} model={open.model} close={close} />
      )}
    </div>
  );
}
