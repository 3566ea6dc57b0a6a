import { type Cluster, removeCluster } from "../api";
import { count } from "../format";
import { Dialog } from "../parts/dialog";
import { aliasesOf } from "../state";

export function RemoveCluster({ cluster, close }: { cluster: Cluster; close: () => void }) {
  const { id, label, pools } = cluster;
  const running = pools.reduce((sum, pool) => sum + pool.in_flight, 0);
  const models = aliasesOf(cluster).size;
  if (models > 0) {
    return (
      <Dialog
        title={`${label || id} cannot be removed yet`}
        action="Close"
        tells
        close={close}
        submit={async () => ({ ok: true })}
      >
        <p>
          {count(models, "model")} and {count(running, "running request")} are on it: the server
          removes a cluster only when nothing is loaded on it. Unload first.
        </p>
      </Dialog>
    );
  }
  return (
    <Dialog
      title={`Remove ${label || id}?`}
      action="Remove"
      danger
      close={close}
      submit={() => removeCluster(id)}
    >
      <p>
        Nothing is loaded on it. Its nodes are forgotten; the files on them stay where they are.
      </p>
    </Dialog>
  );
}
