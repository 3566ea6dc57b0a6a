import { Copy } from "./copy";

// Words for a terminal, ready to be taken along.
export function Command({ words }: { words: string }) {
  return (
    <div class="command">
      <pre tabIndex={0} aria-label="Command">
        <code>{words}</code>
      </pre>
      <Copy words={words} what="the command" />
    </div>
  );
}
