import { useEffect, useRef, useState } from "preact/hooks";
import { logIn } from "../api";
import { sentence } from "../format";
import { Field } from "../parts/field";
import { Mark } from "../parts/hull";

// Instead of any page, until somebody has logged in; then the page is shown that was asked for.
export function LoginPage({ done }: { done: () => void }) {
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const shown = useRef<HTMLElement>(null);
  useEffect(() => shown.current?.querySelector("input")?.focus(), []);

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    if (busy) return;
    if (token.trim() === "") return setWrong("The token, please.");
    setBusy(true);
    const outcome = await logIn(token.trim());
    setBusy(false);
    if (outcome.ok) done();
    else setWrong(sentence(outcome.message));
  }

  return (
    <section ref={shown} class="login" aria-labelledby="login">
      <Mark />
      <h2 id="login">Log in</h2>
      <form onSubmit={submit} noValidate>
        <Field
          label="Admin token"
          hint="The line in the server's --admin-token-file."
          value={token}
          change={(value) => {
            setToken(value);
            setWrong("");
          }}
          wrong={wrong}
          secret
        />
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? "Asking the server…" : "Log in"}
        </button>
      </form>
    </section>
  );
}
