import { type Fleet } from "../api";
import { Ago, Until } from "../parts/clock";
import { Copy } from "../parts/copy";
import { type Stream } from "../state";

// Says when what is shown may no longer be true. Silent while all is well.
export function Connection({ stream, retry }: { stream: Stream<Fleet>; retry: () => void }) {
  switch (stream.tag) {
    case "live":
      return null;
    case "connecting":
      return (
        <section class="banner" aria-label="Connection">
          Connecting to the server…
        </section>
      );
    case "stale":
      return (
        <section class="banner" data-tone="wait" aria-label="Connection">
          <span>
            The server has been silent; what you see is from <Ago at={stream.at} />.
          </span>
        </section>
      );
    case "error":
      return (
        <section class="banner" data-tone="out" aria-label="Connection">
          <span>
            <strong>Not connected.</strong> {stream.message}{" "}
            {stream.last && (
              <>
                What you see is from <Ago at={stream.last.at} />.{" "}
              </>
            )}
            Trying again <Until at={stream.retry_at} />.
          </span>
          <span class="spring" />
          <Copy words={stream.message} what="the error" />
          <button type="button" class="button small" onClick={retry}>
            Try now
          </button>
        </section>
      );
  }
}
