import { send } from "../api";
import { count } from "../format";
import { type Key } from "../keys";
import { Dialog } from "../parts/dialog";

interface Props {
  known: Key;
  last: boolean; // no key is left then
  close: () => void;
  removed: () => void;
}

export function RemoveKey({ known, last, close, removed }: Props) {
  const { id, name, in_flight } = known;
  async function submit() {
    const outcome = await send("DELETE", `/admin/keys/${encodeURIComponent(id)}`);
    if (outcome.ok) removed();
    return outcome;
  }
  return (
    <Dialog title={`Remove the key ${name}?`} action="Remove" danger close={close} submit={submit}>
      <p>
        Whoever has it is refused from then on, and it cannot be brought back.{" "}
        {in_flight > 0 && `Its ${count(in_flight, "running request")} may finish. `}
        What it has used stays counted.
      </p>
      {last && (
        <p>
          It is the last one: without any key, requests from this machine are served without one, and
          no others.
        </p>
      )}
    </Dialog>
  );
}
