import { useContext, useState } from "preact/hooks";
import { type Fleet } from "../api";
import { Notify } from "../notify";
import { AddCluster } from "../panels/add_cluster";
import { ClusterPanel } from "../panels/cluster";
import { EditCluster } from "../panels/edit_cluster";
import { LoadModel } from "../panels/load_model";
import { ManageReplica } from "../panels/manage_replica";
import { NoCluster } from "../panels/no_cluster";
import { ReloadModel } from "../panels/reload_model";
import { RemoveCluster } from "../panels/remove_cluster";
import { Summary } from "../panels/summary";
import { UnloadModel } from "../panels/unload_model";
import { totals, type Tracks } from "../state";

type Open =
  | { tag: "none" }
  | { tag: "load"; cluster: string }
  | { tag: "edit"; cluster: string }
  | { tag: "remove"; cluster: string }
  | { tag: "manage"; cluster: string; alias: string; node: string }
  | { tag: "reload" | "unload"; cluster: string; alias: string };

// Up to so many replicas every pool is shown open, until someone closes it.
const openUpTo = 16;

interface Props {
  fleet: Fleet;
  tracks: Tracks;
  adds: boolean; // the dialog that adds a cluster is open
  setAdds: (adds: boolean) => void;
}

interface DialogProps {
  open: Open;
  fleet: Fleet;
  show: (open: Open) => void;
}

function Dialogs({ open, fleet, show }: DialogProps) {
  const close = () => show({ tag: "none" });
  const failed = useContext(Notify);
  if (open.tag === "none") return null;
  const cluster = fleet.clusters.find((c) => c.id === open.cluster);
  if (!cluster) return null;
  if (open.tag === "load") return <LoadModel cluster={cluster} close={close} failed={failed} />;
  if (open.tag === "remove") return <RemoveCluster cluster={cluster} close={close} />;
  if (open.tag === "edit") {
    const remove = () => show({ tag: "remove", cluster: cluster.id });
    return <EditCluster cluster={cluster} close={close} remove={remove} />;
  }
  const pool = cluster.pools.find((p) => p.alias === open.alias);
  if (!pool) return null;
  if (open.tag === "manage") {
    const replica = pool.replicas.find((r) => r.node === open.node);
    if (!replica) return null;
    return <ManageReplica cluster={open.cluster} pool={pool} replica={replica} close={close} />;
  }
  if (open.tag === "reload")
    return <ReloadModel cluster={open.cluster} pool={pool} close={close} failed={failed} />;
  return <UnloadModel cluster={open.cluster} pool={pool} close={close} failed={failed} />;
}

export function ClustersPage({ fleet, tracks, adds, setAdds }: Props) {
  const [open, show] = useState<Open>({ tag: "none" });
  const [turned, turn] = useState<ReadonlyMap<string, boolean>>(new Map());
  const few = totals(fleet).replicas_total <= openUpTo;
  const isOpen = (track: string) => turned.get(track) ?? few;
  const taken = fleet.clusters.map((c) => c.id);
  return (
    <>
      <Summary fleet={fleet} tracks={tracks} />
      <div class="clusters">
        {fleet.clusters.map((cluster) => (
          <ClusterPanel
            key={cluster.id}
            cluster={cluster}
            tracks={tracks}
            isOpen={isOpen}
            toggle={(track) => turn(new Map(turned).set(track, !isOpen(track)))}
            load={() => show({ tag: "load", cluster: cluster.id })}
            edit={() => show({ tag: "edit", cluster: cluster.id })}
            manage={(alias, node) => show({ tag: "manage", cluster: cluster.id, alias, node })}
            reload={(alias) => show({ tag: "reload", cluster: cluster.id, alias })}
            unload={(alias) => show({ tag: "unload", cluster: cluster.id, alias })}
          />
        ))}
        {fleet.clusters.length === 0 && <NoCluster add={() => setAdds(true)} />}
      </div>
      {adds && <AddCluster taken={taken} close={() => setAdds(false)} />}
      <Dialogs open={open} fleet={fleet} show={show} />
    </>
  );
}
