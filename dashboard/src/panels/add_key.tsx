import { useState } from "preact/hooks";
import { type Outcome } from "../api";
import { isWrong, keyBody, type KeyForm, type MadeKey, makeKey, noKey, wrongKey } from "../keys";
import { Dialog } from "../parts/dialog";
import { Field } from "../parts/field";

interface Props {
  taken: readonly string[]; // names of other keys
  loaded: readonly string[]; // aliases
  made: (key: MadeKey) => void;
  close: () => void;
}

export function AddKey({ taken, loaded, made, close }: Props) {
  const [form, set] = useState<KeyForm>(noKey);
  const [tried, setTried] = useState(false);
  const wrong = wrongKey(form, taken);
  const bind = (field: keyof KeyForm) => ({
    value: form[field],
    change: (value: string) => set({ ...form, [field]: value.trim() }),
    wrong: wrong[field],
  });

  async function submit(): Promise<Outcome> {
    setTried(true);
    if (isWrong(wrong)) return { ok: false, status: 0, message: "" };
    return makeKey(keyBody(form, Date.now() / 1000), made);
  }

  return (
    <Dialog title="Create an API key" action="Create" wide close={close} submit={submit}>
      <Field
        {...bind("name")}
        label="Name"
        hint="What or who it is for: letters, digits, dots, dashes and underscores."
        wrong={tried || form.name !== "" ? wrong.name : ""}
        placeholder="build-server"
        autofocus
      />
      <Field
        label="Models"
        hint="Aliases with commas between; empty: all."
        value={form.models}
        change={(models) => set({ ...form, models })}
        placeholder={loaded.join(", ")}
      />
      <div class="field-row">
        <Field
          {...bind("weight")}
          label="Weight"
          hint="Its share where keys wait for each other."
          placeholder="1"
          numeric
        />
        <Field
          {...bind("atOnce")}
          label="Answers at once"
          hint="Beyond: 429."
          placeholder="no bound"
          numeric
        />
        <Field
          {...bind("requests")}
          label="Requests a minute"
          hint="Beyond: 429."
          placeholder="no bound"
          numeric
        />
        <Field
          {...bind("tokens")}
          label="Tokens a minute"
          hint="Prompts and answers."
          placeholder="no bound"
          numeric
        />
        <Field
          {...bind("group")}
          label="Cache group"
          hint="Keys of one group share what is cached of prompts."
          placeholder="its own"
        />
        <Field
          {...bind("days")}
          label="Expires in days"
          hint="Then it opens nothing."
          placeholder="never"
          numeric
        />
      </div>
    </Dialog>
  );
}
