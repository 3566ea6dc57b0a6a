import { send } from "../api";
import { count } from "../format";
import { Dialog } from "../parts/dialog";
import { type Request } from "../requests";

export function CancelRequest({ entry, close }: { entry: Request; close: () => void }) {
  const { id, model, node, completion_tokens } = entry;
  return (
    <Dialog
      title="Cancel this request?"
      action="Cancel the request"
      back="Let it go on"
      danger
      close={close}
      submit={() => send("POST", `/admin/requests/${encodeURIComponent(id)}/cancel`, {})}
    >
      <p>
        <code>{id}</code> for {model || "a model"}
        {node && ` on ${node}`}
        {completion_tokens > 0 && `, ${count(completion_tokens, "token")} so far`}. Its client gets
        an error instead of the rest of its answer; its place goes to the next. No other request is
        touched.
      </p>
    </Dialog>
  );
}
