import { useEffect, useState } from "preact/hooks";
import { type Fleet, logOut } from "../api";
import { Mark } from "../parts/hull";
import { type Tone } from "../parts/tip";
import { type PageId } from "../route";
import { type Access, type Health, healthOf, lastOf, type Stream } from "../state";
import { currentTheme, setTheme } from "../theme";
import { Nav } from "./nav";

const healthWords: Record<Health, { tone: Tone; words: string }> = {
  idle: { tone: "plain", words: "idle" },
  loading: { tone: "wait", words: "loading" },
  ok: { tone: "live", words: "ok" },
  degraded: { tone: "wait", words: "degraded" },
  out: { tone: "out", words: "no replica live" },
};

function healthShown(stream: Stream<Fleet>): { tone: Tone; words: string } {
  switch (stream.tag) {
    case "connecting":
      return { tone: "plain", words: "connecting" };
    case "live":
      return healthWords[healthOf(stream.value)];
    case "stale":
      return { tone: "wait", words: "no news" };
    case "error":
      return { tone: "out", words: "not connected" };
  }
}

function ThemeToggle() {
  const [theme, show] = useState(currentTheme);
  const other = theme === "dark" ? "light" : "dark";
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={`Switch to ${other} theme`}
      title={`Switch to ${other} theme`}
      onClick={() => {
        setTheme(other);
        show(other);
      }}
    >
      <svg viewBox="0 0 20 20" aria-hidden="true">
        <circle cx="10" cy="10" r="6.5" />
        <path d="M10 3.5a6.5 6.5 0 0 1 0 13z" />
      </svg>
    </button>
  );
}

function skip(event: MouseEvent) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

// The page begins anew: nothing of what it knew stays for whoever comes next.
async function leave() {
  await logOut();
  location.reload();
}

interface Props {
  stream: Stream<Fleet>;
  access: Access;
  page: PageId;
  addCluster: () => void;
}

export function Header({ stream, access, page, addCluster }: Props) {
  const open = access === "open";
  const fleet = open ? lastOf(stream)?.value : undefined;
  const { tone, words } = healthShown(stream);
  useEffect(() => {
    const news = !open ? "Log in" : tone === "wait" || tone === "out" ? words : "";
    document.title = news ? `${news} · Flotilla` : "Flotilla";
  }, [open, tone, words]);
  return (
    <header class="bridge">
      <a class="skip" href={location.hash} onClick={skip}>
        Skip to the page
      </a>
      <a class="brand" href="#/clusters">
        <Mark />
        <h1 class="wordmark">Flotilla</h1>
      </a>
      {fleet && <span class="version">{fleet.version}</span>}
      {open && (
        <span class="health" data-tone={tone} role="status">
          <span class="lamp" aria-hidden="true" />
          {words}
        </span>
      )}
      <span class="spring" />
      {open && (
        <button type="button" class="button on-bridge" disabled={!fleet} onClick={addCluster}>
          Add<span class="wide-only"> Argo cluster</span>
          <span class="spoken narrow-only"> Argo cluster</span>
        </button>
      )}
      {fleet?.login && (
        <button
          type="button"
          class="icon-button"
          aria-label="Log out"
          title="Log out"
          onClick={leave}
        >
          <svg viewBox="0 0 20 20" aria-hidden="true">
            <polyline points="8,3.5 3.5,3.5 3.5,16.5 8,16.5" />
            <polyline points="12.5,6 16.5,10 12.5,14" />
            <line x1="7.5" y1="10" x2="16.5" y2="10" />
          </svg>
        </button>
      )}
      <ThemeToggle />
      {open && <Nav page={page} />}
    </header>
  );
}
