import { type MadeKey } from "../keys";
import { Copy } from "../parts/copy";
import { Dialog } from "../parts/dialog";

// The only time that the secret is shown: the server has no more than its hash.
export function ShowMadeKey({ made, close }: { made: MadeKey; close: () => void }) {
  return (
    <Dialog
      title={`The key ${made.name}`}
      action="I have it"
      tells
      stays
      close={close}
      submit={async () => ({ ok: true })}
    >
      <p>Copy it now. It is shown this once, and nobody can read it from the server.</p>
      <div class="command secret">
        <pre tabIndex={0} aria-label="Secret">
          <code>{made.secret}</code>
        </pre>
        <Copy words={made.secret} what="the secret" />
      </div>
    </Dialog>
  );
}
