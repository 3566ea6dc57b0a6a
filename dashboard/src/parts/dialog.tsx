import { type ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Outcome } from "../api";
import { Trouble } from "./trouble";

interface Props {
  title: string;
  action: string;
  danger?: boolean;
  wide?: boolean;
  tells?: boolean; // it has nothing to ask: there is no Cancel
  stays?: boolean; // what it tells is not told again: only its button closes it, Escape does not
  back?: string; // the button's words that leave all as it is, where "Cancel" would say another thing
  close: () => void;
  submit: () => Promise<Outcome>;
  children: ComponentChildren;
}

// A modal form: the browser traps the focus and closes on Escape; a refusal stays in it, in words, until
// something of what was refused is changed.
// An outcome without words: something in it is wrong, and says so itself; the first of it gets the focus.
export function Dialog(props: Props) {
  const { title, action, danger = false, wide = false, tells = false, back = "Cancel" } = props;
  const { stays = false, close, submit, children } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const gone = useRef(false);
  const heading = useId();
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const [faults, count] = useState(0);
  const press = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => {
      gone.current = true; // its end is no wish of the operator's
      shown?.close(); // gives the focus back to where it was
    };
  }, []);

  // The browser lets a second Escape through whatever the dialog says to the first, unless its key is taken.
  useEffect(() => {
    if (!stays) return;
    const take = (event: KeyboardEvent) => event.key === "Escape" && event.preventDefault();
    addEventListener("keydown", take);
    return () => removeEventListener("keydown", take);
  }, [stays]);

  useEffect(() => {
    if (faults > 0) dialog.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [faults]);
  // The button that was pressed has lost the focus while it could not be pressed again.
  useEffect(() => {
    const shown = dialog.current;
    if (!busy && shown && !shown.contains(document.activeElement)) press.current?.focus();
  }, [busy]);

  async function run(event: SubmitEvent) {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setRefusal("");
    const outcome = await submit();
    if (!dialog.current) return; // closed meanwhile; another dialog may be open
    setBusy(false);
    if (outcome.ok) close();
    else if (outcome.message) setRefusal(outcome.message);
    else count((before) => before + 1);
  }

  return (
    <dialog
      ref={dialog}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={heading}
      onCancel={(event) => stays && event.preventDefault()}
      onClose={() => gone.current || close()}
    >
      <form onSubmit={run} onInput={() => setRefusal("")}>
        <h2 id={heading}>{title}</h2>
        {children}
        {refusal && <Trouble words={refusal} />}
        <div class="dialog-actions">
          {!tells && (
            <button type="button" class="button" onClick={close}>
              {back}
            </button>
          )}
          <button
            ref={press}
            type="submit"
            class={danger ? "button danger" : "button primary"}
            disabled={busy}
          >
            {busy ? "Asking the server…" : action}
          </button>
        </div>
      </form>
    </dialog>
  );
}
