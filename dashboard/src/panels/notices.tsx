import { secondOf } from "../format";
import { Copy } from "../parts/copy";
import { type Notice } from "../state";

// Errors stay until someone has read them.
export function Notices({
  notices,
  dismiss,
}: {
  notices: readonly Notice[];
  dismiss: (id: number) => void;
}) {
  return (
    <div class="notices" role="region" aria-label="Errors" aria-live="assertive">
      {notices.map(({ id, title, detail, at }) => (
        <article key={id} class="notice">
          <div>
            <h2>{title}</h2>
            <p>{detail}</p>
            <time class="num" dateTime={new Date(at).toISOString()}>
              {secondOf(at)}
            </time>
          </div>
          <div class="notice-actions">
            <Copy words={`${title}\n${detail}\n${new Date(at).toISOString()}`} what="this error" />
            <button type="button" class="button small" onClick={() => dismiss(id)}>
              Dismiss
            </button>
          </div>
        </article>
      ))}
    </div>
  );
}
