import { useLayoutEffect, useRef } from "preact/hooks";
import { pages, type PageId } from "../route";

// The pages. Tab reaches the list, the arrow keys move along it.
export function Nav({ page }: { page: PageId }) {
  const list = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const link = list.current?.querySelector("[aria-current]");
    link?.scrollIntoView({ inline: "center", block: "nearest" }); // on a telephone they scroll
  }, [page]);
  function key(event: KeyboardEvent & { currentTarget: HTMLElement }) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const links = [...event.currentTarget.querySelectorAll("a")];
    const at = links.findIndex((link) => link === document.activeElement);
    links[(at + step + links.length) % links.length]?.focus();
    event.preventDefault();
  }
  return (
    <nav ref={list} class="pages" aria-label="Pages" onKeyDown={key}>
      {pages.map(({ id, label }) => (
        <a key={id} href={`#/${id}`} {...(id === page ? { "aria-current": "page" as const } : {})}>
          {label}
        </a>
      ))}
    </nav>
  );
}
