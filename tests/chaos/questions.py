"""What users ask, how an answer reads in each of the API's forms, and what is wrong with one."""

import dataclasses
import json

from support import ALIAS

TOPICS = ["the sea", "a lighthouse", "two rivers", "an old clock", "a train at night", "the first snow",
          "a garden", "a lost letter", "mountains", "a market", "a small ship", "the desert"]


@dataclasses.dataclass(frozen=True)
class Question:
    name: str
    user: str
    path: str
    body: dict

    @property
    def streamed(self):
        return bool(self.body.get("stream"))


@dataclasses.dataclass
class Told:
    """What an answer, or the part of it that came, says."""

    texts: dict = dataclasses.field(default_factory=dict)  # by choice
    finish: dict = dataclasses.field(default_factory=dict)
    tokens: int | None = None
    done: bool = False  # its form's own end came
    error: str | None = None
    resumed: bool = False

    def add(self, choice, text):
        self.texts[choice] = self.texts.get(choice, "") + (text or "")


def questions_of(user, number, canary):
    """A user's questions; each has the user's canary in it, which no one else may see."""
    def topic(step):
        return TOPICS[(number * 5 + step) % len(TOPICS)]

    def chat(name, text, **options):
        body = {"model": ALIAS, "messages": [{"role": "user", "content": text}], "temperature": 0} | options
        return Question(f"{user}/{name}", user, "/v1/chat/completions", body)

    usage = {"stream": True, "stream_options": {"include_usage": True}}
    told_before = [{"role": "user", "content": f"Call me {canary}. What do you know of {topic(1)}?"},
                   {"role": "assistant", "content": f"A little, {canary}: it is older than most stories tell."},
                   {"role": "user", "content": "Go on, and say my name again."}]
    return [
        chat("greedy", f"My word is {canary}. Say it, then tell me about {topic(0)}.", max_tokens=48, **usage),
        chat("sampled", f"A poem about {topic(2)} and {canary}", max_tokens=40, temperature=0.8, seed=number, **usage),
        chat("whole", f"{canary}: three facts about {topic(3)}", max_tokens=40, temperature=0.8, seed=number + 100),
        chat("choices", f"Repeat: {canary} {canary} {topic(4)}", max_tokens=24, n=2, temperature=1, seed=number + 200,
             **usage),
        chat("conversation", "", messages=told_before, session_id=canary, max_tokens=64, ignore_eos=True, **usage),
        # To the edge of the context, whatever is asked for.
        chat("edge", f"{canary} " + "and on it goes " * 60, max_tokens=9999, ignore_eos=True, **usage),
        Question(f"{user}/completion", user, "/v1/completions",
                 {"model": ALIAS, "prompt": f"The ship {canary} sailed to {topic(5)} and", "max_tokens": 40,
                  "temperature": 0} | usage),
        Question(f"{user}/messages", user, "/v1/messages",
                 {"model": ALIAS, "system": f"The secret is {canary}.", "max_tokens": 32, "temperature": 0,
                  "stream": True, "messages": [{"role": "user", "content": f"Tell me about {topic(6)}."}]}),
        Question(f"{user}/response", user, "/v1/responses",
                 {"model": ALIAS, "input": f"{canary} likes {topic(7)}. Why?", "max_output_tokens": 32,
                  "temperature": 0, "store": False}),
    ]


def read(question, raw):
    """Told by the bytes that came; a torn last event is left out."""
    told = Told()
    text = raw.decode("utf-8", "replace")
    if not question.streamed:
        try:
            _read_whole(told, json.loads(text))
        except ValueError:
            told.error = "not JSON"
        return told
    for block in text.split("\n\n")[:-1]:
        data = "".join(line[6:] for line in block.split("\n") if line.startswith("data: "))
        if data == "[DONE]":
            told.done = True
        elif data:
            _read_event(told, json.loads(data))
    return told


def _read_whole(told, answer):
    if "error" in answer and answer["error"]:
        told.error = _reason(answer["error"])
        return
    told.done = True
    usage = answer.get("usage") or {}
    told.tokens = usage.get("completion_tokens", usage.get("output_tokens"))
    told.resumed = bool((answer.get("x_flotilla") or {}).get("resumed"))
    for choice in answer.get("choices", []):
        told.add(choice["index"], choice["message"]["content"])
        told.finish[choice["index"]] = choice["finish_reason"]
    for item in answer.get("output", []):
        for part in item.get("content", []):
            told.add(0, part.get("text"))
    if "output" in answer:
        told.finish[0] = answer["status"]


def _read_event(told, event):
    if event.get("error"):
        told.error = _reason(event["error"])
        return
    if event.get("usage") and "choices" in event:
        told.tokens = event["usage"]["completion_tokens"]
    told.resumed |= bool((event.get("x_flotilla") or {}).get("resumed"))
    for choice in event.get("choices", []):
        told.add(choice["index"], choice["text"] if "text" in choice else choice["delta"].get("content"))
        if choice.get("finish_reason"):
            told.finish[choice["index"]] = choice["finish_reason"]
    if event.get("type") == "content_block_delta":
        told.add(0, event["delta"].get("text"))
    elif event.get("type") == "message_delta":
        told.finish[0] = event["delta"]["stop_reason"]
        told.tokens = event["usage"]["output_tokens"]
    elif event.get("type") == "message_stop":
        told.done = True


def _reason(error):
    return str(error.get("code") or error.get("type")) if isinstance(error, dict) else str(error)


def difference(got, wanted):
    """How a text differs from what it must be: truncated, repeated, lost or changed; None: not at all."""
    if got == wanted:
        return None
    if wanted.startswith(got):
        return "truncated"
    at = next((i for i, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1]), min(len(got), len(wanted)))
    rest = got[at:at + 12]
    # What was shown before, perhaps in part: the same text that begins earlier.
    if rest and got[:at].endswith(rest) or len(rest) >= 4 and rest in wanted[max(0, at - 200):at + len(rest) - 1]:
        return "repeated"
    if len(rest) >= 4 and rest in wanted[at:]:
        return "lost"
    return "changed"


def verdict(told, wanted, exact=True):
    """What is wrong with an answer that ended; None: nothing."""
    if told.error:
        return f"error {told.error}"
    if not told.done or set(told.finish) != set(wanted.finish):
        return "truncated"
    if exact:
        for choice, text in wanted.texts.items():
            wrong = difference(told.texts.get(choice, ""), text)
            if wrong:
                return wrong
        if told.finish != wanted.finish:
            return "changed"
    return None if told.tokens == wanted.tokens else "miscounted"


def part_verdict(told, wanted):
    """The same of what a client took before it left: the beginning of what it must be."""
    for choice, text in told.texts.items():
        if not wanted.texts.get(choice, "").startswith(text):
            return difference(text, wanted.texts.get(choice, "")[:len(text)]) or "changed"
    return None


def read_error(raw):
    """The code of a refusal, and its words."""
    try:
        error = json.loads(raw)["error"]
        return f"{_reason(error)}: {error.get('message')}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return repr(raw[:200])
