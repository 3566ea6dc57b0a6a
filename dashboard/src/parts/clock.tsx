import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { duration } from "../format";

// When the state that is shown arrived: what the server counts down, it counts from there.
export const ArrivedAt = createContext(0);

// The time, again every second while the component is on the page.
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

// "in 23 s", running.
export function Countdown({ seconds }: { seconds: number }) {
  const until = useContext(ArrivedAt) + seconds * 1000;
  return <Until at={until} />;
}

export function Until({ at }: { at: number }) {
  const left = (at - useNow()) / 1000;
  return <span class="num">{left > 0 ? `in ${duration(left)}` : "now"}</span>;
}

export function Ago({ at }: { at: number }) {
  return <span class="num">{duration((useNow() - at) / 1000)} ago</span>;
}
