// How any panel leaves an error on the page until someone has read it.
import { createContext } from "preact";

export const Notify = createContext<(title: string, detail: string) => void>(() => {});
