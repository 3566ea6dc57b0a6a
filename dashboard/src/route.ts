// The page's address: #/chat and so on. A reload, a bookmark and the back button work.
import { useEffect, useState } from "preact/hooks";

export const pages = [
  { id: "clusters", label: "Clusters" },
  { id: "chat", label: "Chat" },
  { id: "live", label: "Live" },
  { id: "bench", label: "Bench" },
  { id: "nodes", label: "Nodes" },
  { id: "models", label: "Models" },
  { id: "keys", label: "Keys" },
  { id: "settings", label: "Settings" },
  { id: "logs", label: "Logs" },
  { id: "api", label: "API" },
] as const;

export type PageId = (typeof pages)[number]["id"];

export function pageOf(hash: string): PageId {
  const wanted = hash.replace(/^#\/?/, "");
  return pages.find((page) => page.id === wanted)?.id ?? "clusters";
}

export function useRoute(): PageId {
  const [page, show] = useState(() => pageOf(location.hash));
  useEffect(() => {
    const moved = () => show(pageOf(location.hash));
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  return page;
}
