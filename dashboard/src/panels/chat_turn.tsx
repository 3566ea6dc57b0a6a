import { count, rate } from "../format";
import { Copy } from "../parts/copy";
import { Markdown } from "../parts/markdown";
import { type Answer, isOpen, splitReasoning, type Turn } from "../chat/state";

const ms = (value: number) =>
  value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value)} ms`;

function figuresOf(answer: Answer): [name: string, value: string][] {
  switch (answer.tag) {
    case "waiting":
    case "failed":
      return [];
    case "streaming": {
      const { asked_at, first_at, last_at, pieces } = answer;
      const seconds = (last_at - first_at) / 1000;
      return [
        ["TTFT", ms(first_at - asked_at)],
        ["tokens/s", seconds > 0.2 ? rate((pieces - 1) / seconds) : "…"],
      ];
    }
    case "stopped":
      return [["stopped after", count(answer.pieces, "token")]];
    case "done": {
      const { served, usage, finish } = answer;
      const figures: [string, string][] = [];
      if (served) {
        figures.push(["replica", served.node || served.replica], ["TTFT", ms(served.ttft_ms)]);
        if (served.queued_ms >= 1) figures.push(["queued", ms(served.queued_ms)]);
        figures.push(["tokens/s", rate(served.tokens_per_s)]);
      }
      if (usage) {
        const { prompt_tokens, completion_tokens } = usage;
        figures.push(["tokens", `${prompt_tokens} in, ${completion_tokens} out`]);
      }
      if (served) figures.push(["cached", String(served.cached_tokens)]);
      if (served?.resumed) figures.push(["resumed", "on another replica"]);
      if (finish && finish !== "stop") figures.push(["ended by", finish]);
      return figures;
    }
  }
}

function Figures({ answer }: { answer: Answer }) {
  const figures = figuresOf(answer);
  if (figures.length === 0) return null;
  return (
    <dl class="turn-figures" data-answer={answer.tag}>
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="num">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface Props {
  turn: Turn;
  again: () => void;
  dismiss: () => void;
}

function Failure({ message, again, dismiss }: { message: string } & Omit<Props, "turn">) {
  return (
    <div class="refusal turn-failure" role="alert">
      <p>{message}</p>
      <span class="notice-actions">
        <Copy words={message} what="the error" />
        <button type="button" class="button small" onClick={again}>
          Ask again
        </button>
        <button type="button" class="button small" onClick={dismiss}>
          Dismiss
        </button>
      </span>
    </div>
  );
}

// A question and its answer, with who gave it and how fast.
export function ChatTurn({ turn, again, dismiss }: Props) {
  const { text, reasoning } = splitReasoning(turn);
  const { answer } = turn;
  return (
    <article class="turn" data-answer={answer.tag} aria-busy={isOpen(turn)}>
      <p class="turn-prompt">{turn.prompt}</p>
      {reasoning && (
        <details class="reasoning">
          <summary>Reasoning{isOpen(turn) && !text ? ", still thinking…" : ""}</summary>
          <Markdown words={reasoning} />
        </details>
      )}
      {text && <Markdown words={text} />}
      {answer.tag === "waiting" && <p class="muted turn-waiting">Waiting for the first token…</p>}
      {answer.tag === "failed" && (
        <Failure message={answer.message} again={again} dismiss={dismiss} />
      )}
      <footer class="turn-foot">
        <Figures answer={answer} />
        {text && !isOpen(turn) && <Copy words={text} what="the answer" />}
      </footer>
    </article>
  );
}
