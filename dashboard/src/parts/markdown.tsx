import DOMPurify from "dompurify";
import { Marked } from "marked";
import { useLayoutEffect, useRef } from "preact/hooks";

// What a model writes is a stranger's text: only these tags come through, and nothing that loads.
const allowed = {
  ALLOWED_TAGS: [
    ..."p br hr strong em del code pre blockquote ul ol li a h1 h2 h3 h4 h5 h6".split(" "),
    ..."table thead tbody tr th td".split(" "),
  ],
  ALLOWED_ATTR: ["href", "title", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true,
} as const;

const escaped = (words: string) =>
  words.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

// HTML in an answer is shown as the model wrote it; a picture from elsewhere becomes its words.
const marked = new Marked({
  gfm: true,
  async: false,
  renderer: {
    html: ({ text, block }) => (block ? `<p>${escaped(text)}</p>` : escaped(text)),
    image: ({ text, href }) => escaped(text || href),
  },
});

export function sanitised(markdown: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(marked.parse(markdown, { async: false }), {
    ...allowed,
    ALLOWED_TAGS: [...allowed.ALLOWED_TAGS],
    ALLOWED_ATTR: [...allowed.ALLOWED_ATTR],
  });
  for (const link of fragment.querySelectorAll("a")) {
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer");
  }
  // What may be wider than its column scrolls, with the keyboard too.
  for (const wide of fragment.querySelectorAll("pre, table")) wide.setAttribute("tabindex", "0");
  return fragment;
}

export function Markdown({ words }: { words: string }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => box.current?.replaceChildren(sanitised(words)), [words]);
  return <div class="markdown" ref={box} />;
}
