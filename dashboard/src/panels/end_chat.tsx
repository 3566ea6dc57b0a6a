import { type Column, isOpen } from "../chat/state";
import { count } from "../format";
import { Dialog } from "../parts/dialog";

interface Props {
  action: "Clear" | "Close";
  columns: readonly Column[]; // those whose words go
  end: () => void;
  close: () => void;
}

// What was said is kept by this page alone: before it goes, it is said what goes with it.
export function EndChat({ action, columns, end, close }: Props) {
  const running = columns.flatMap((column) => column.turns).filter(isOpen).length;
  async function submit() {
    end();
    return { ok: true as const };
  }
  return (
    <Dialog
      title={`${action} ${count(columns.length, "conversation")}?`}
      action={action}
      danger
      close={close}
      submit={submit}
    >
      <p>
        {running > 0
          ? `${count(running, "running answer")} ${running === 1 ? "is" : "are"} stopped. `
          : "No answer is running. "}
        What was said is gone then: nothing but this page has it.
      </p>
    </Dialog>
  );
}
