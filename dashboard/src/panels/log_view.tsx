import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { count } from "../format";
import { Copy } from "../parts/copy";
import { Trouble } from "../parts/trouble";
import { Unavailable } from "../parts/unavailable";
import { type Log, linesShown } from "../operations";
import { type Tail, useLog } from "../use_log";

function Lines({ log, wanted }: { log: Log; wanted: string }) {
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  const [more, setMore] = useState(1);
  const words = wanted.toLowerCase();
  const found = words ? log.lines.filter((line) => line.toLowerCase().includes(words)) : log.lines;
  const shown = found.slice(-linesShown * more);
  const hidden = found.length - shown.length;
  useLayoutEffect(() => {
    const pre = box.current;
    if (pre && follows.current) pre.scrollTop = pre.scrollHeight;
  });
  return (
    <>
      <p class="hint log-facts">
        {count(found.length, "line")}
        {words && " found"}
        {log.dropped > 0 && `, ${log.dropped} older ones dropped`}
        {hidden > 0 && (
          <button type="button" class="link" onClick={() => setMore(more * 2)}>
            show {Math.min(hidden, linesShown * more)} older
          </button>
        )}
        <Copy words={found.join("\n")} what="the log" />
      </p>
      <pre
        class="log"
        ref={box}
        tabIndex={0}
        aria-label="Log"
        onScroll={(event) => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
          follows.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {shown.join("\n")}
      </pre>
    </>
  );
}

interface ShownProps {
  tail: Tail;
  wanted: string;
  again: () => void;
}

function Shown({ tail, wanted, again }: ShownProps) {
  switch (tail.tag) {
    case "connecting":
      return <p class="muted">Reading…</p>;
    case "missing":
      return <Unavailable what="logs" route="GET /admin/logs" />;
    case "error":
      return <Trouble words={tail.message} again={again} />;
    case "live":
    case "ended":
      return <Lines log={tail.log} wanted={wanted} />;
  }
}

interface Props {
  node: string;
  pool: string;
  generation: number;
}

export function LogView({ node, pool, generation }: Props) {
  const [count, grow] = useState(0);
  const tail = useLog(node, pool, `${generation}/${count}`);
  const [wanted, search] = useState("");
  return (
    <>
      <input
        class="search"
        type="search"
        value={wanted}
        placeholder="Find in the log"
        aria-label="Find in the log"
        onInput={(event) => search(event.currentTarget.value)}
      />
      <Shown tail={tail} wanted={wanted} again={() => grow(count + 1)} />
    </>
  );
}
