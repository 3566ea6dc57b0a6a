import { useEffect, useState } from "preact/hooks";

// The clipboard API exists only on loopback and https; elsewhere the old way still works.
async function copy(words: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    const before = document.activeElement;
    const area = document.createElement("textarea");
    area.value = words;
    // Behind an open dialog nothing can be selected.
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (before instanceof HTMLElement) before.focus();
    return done;
  }
}

export function Copy({ words, what }: { words: string; what: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 2_000);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <button
      type="button"
      class="button small"
      aria-label={said ? said : `Copy ${what}`}
      onClick={async () => setSaid((await copy(words)) ? "Copied" : "Not allowed")}
    >
      <span aria-live="polite">{said || "Copy"}</span>
    </button>
  );
}
