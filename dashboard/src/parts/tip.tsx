import { type ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

export type Tone = "plain" | "live" | "wait" | "out";

interface Props {
  tone?: Tone;
  label: ComponentChildren;
  children: ComponentChildren;
}

// A pill that says more when pointed at, focused or touched; Escape closes it.
export function Tip({ tone = "plain", label, children }: Props) {
  const id = useId();
  const [side, setSide] = useState("left");
  // The box hangs from the pill's side that has more room.
  const place = (event: { currentTarget: HTMLElement }) => {
    const { left, right } = event.currentTarget.getBoundingClientRect();
    setSide(left > window.innerWidth - right ? "right" : "left");
  };
  return (
    <span class="tip" data-side={side} onPointerEnter={place} onFocusCapture={place}>
      <button
        type="button"
        class="pill"
        data-tone={tone}
        aria-describedby={id}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
      >
        {label}
      </button>
      <span class="tip-box" role="tooltip" id={id}>
        {children}
      </span>
    </span>
  );
}
