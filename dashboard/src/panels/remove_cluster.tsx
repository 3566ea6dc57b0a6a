import { type Cluster, removeCluster } from "../api";
import { count } from "../format";
import { Dialog } from "../parts/dialog";

export function RemoveCluster({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const { id, label, pools } = cluster;
  const running = pools.reduce((sum, pool) => sum + pool.in_flight, 0);
  return (
    <Dialog
      title={`Remove ${label || id}?`}
      action="Remove"
      danger
      close={close}
      submit={() => removeCluster(id)}
    >
      <p>
        {pools.length > 0
          ? `${count(pools.length, "model")} and ${count(running, "running request")} are on it: ` +
            "the server removes a cluster only when nothing is loaded on it. Unload first. "
          : "Nothing is loaded on it. "}
        Its nodes are forgotten; the files on them stay where they are.
      </p>
    </Dialog>
  );
}
