import { useEffect, useRef, useState } from "preact/hooks";
import { type Outcome, type Pool, unloadModel } from "../api";
import { count } from "../format";
import { Dialog } from "../parts/dialog";

interface Props {
  cluster: string;
  pool: Pool;
  close: () => void;
  failed: (title: string, detail: string) => void;
}

export function UnloadModel({ cluster, pool, close, failed }: Props) {
  const { alias, in_flight, queue_depth, replicas, replicas_total } = pool;
  const [asked, setAsked] = useState(false);
  const shown = useRef(true);
  useEffect(() => () => void (shown.current = false), []);

  // Running requests may take minutes to end: the pool's row shows it, the dialog need not stay.
  const begun = asked && replicas.some((replica) => replica.state === "draining");
  useEffect(() => {
    if (begun) close();
  }, [begun]);

  async function submit(): Promise<Outcome> {
    setAsked(true);
    const outcome = await unloadModel(cluster, alias);
    if (!outcome.ok && !shown.current) failed(`Unload of ${alias} failed`, outcome.message);
    return outcome;
  }

  return (
    <Dialog title={`Unload ${alias}?`} action="Unload" danger close={close} submit={submit}>
      <p>
        {in_flight > 0
          ? `${count(in_flight, "running request")} may finish first, up to the drain limit. `
          : "No request is running. "}
        {queue_depth > 0 && `${count(queue_depth, "waiting request")} will be refused. `}
        Then {replicas_total === 1 ? "its replica ends" : `its ${replicas_total} replicas end`} and
        their memory is free. Clients that ask for {alias} get an error until it is loaded again.
        The model's file stays where it is.
      </p>
    </Dialog>
  );
}
