// A canvas knows no CSS variables: the theme's colours as the browser computes them.
import { useEffect, useState } from "preact/hooks";

export interface Colours {
  muted: string;
  line: string;
  series: string[];
  font: string;
}

export function colours(within: HTMLElement): Colours {
  const probe = document.createElement("span");
  within.append(probe);
  const computed = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    muted: computed("--muted"),
    line: computed("--line"),
    series: [1, 2, 3, 4, 5, 6].map((index) => computed(`--series-${index}`)),
    font: `12px ${getComputedStyle(within).fontFamily}`,
  };
  probe.remove();
  return found;
}

// Grows whenever light and dark change places, by the system or by the switch.
export function useThemeCount(): number {
  const [count, grow] = useState(0);
  useEffect(() => {
    const changed = () => grow((before) => before + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    const chosen = new MutationObserver(changed);
    system.addEventListener("change", changed);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      system.removeEventListener("change", changed);
      chosen.disconnect();
    };
  }, []);
  return count;
}
