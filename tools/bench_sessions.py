#!/usr/bin/env python3
"""bench_sessions.py [--rounds N]: what kept conversations are worth, and what they cost.

- 40 conversations of 5 turns on 4 replicas: turns on their home, evenness of the work.
- The later turns of 40 conversations that all have one home of 4, against the same with even homes: times to the first
  token.
- 8 conversations of 5 turns with first turns of 1,000 tokens: one node of ours and the vendored llama-server -np 8, in
  turns; times to the first token.
- The second turn of a conversation of 4,000 tokens: share of its prompt that was kept, time to its first token.
- 16 requests with one beginning of 4,000 tokens, together: how often it is computed.
- Eight streams beside 32 parked conversations of 2,000 tokens, against the same server without them.
Exit code 1 where a promise does not hold.
"""

import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import random
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import support  # noqa: E402
import vendored  # noqa: E402

WORDS = ["sea", "ship", "wind", "sail", "port", "wave", "star", "rope", "deck", "gull", "fish", "salt"]
checks = {}


def check(words, holds, seen):
    checks[words] = bool(holds)
    print(f"{'ok' if holds else 'FAILED'}: {words} ({seen})", flush=True)


@contextlib.contextmanager
def node(nodes=1, **settings):
    with tempfile.TemporaryDirectory() as name:
        server = support.Server(pathlib.Path(name))
        try:
            server.load(nodes=[{"id": f"local-{number + 1}"} for number in range(nodes)], **settings)
            yield server
        finally:
            server.stop()


@contextlib.contextmanager
def llama_server(program):
    with tempfile.TemporaryDirectory() as name:
        server = vendored.LlamaServer(program, pathlib.Path(name), 8, context=8192)
        try:
            yield server
        finally:
            server.stop()


def bench(kind, server, *options):
    done = support.run_command("bench", kind, server.url, *options, "--json", timeout=900)
    if done.returncode:
        sys.exit(f"bench_sessions: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def ask(server, content, past=(), tokens=8):
    """Milliseconds to the first token, tokens of the prompt, of them kept, and the answer."""
    begin = time.monotonic()
    first, text, usage = None, "", None
    stream = server.sdk().chat.completions.create(
        model=support.ALIAS, messages=[*past, {"role": "user", "content": content}], max_tokens=tokens, stream=True,
        stream_options={"include_usage": True}, seed=1, extra_body={"ignore_eos": True})
    for chunk in stream:
        usage = chunk.usage or usage
        if chunk.choices and chunk.choices[0].delta.content:
            first = first or 1000 * (time.monotonic() - begin)
            text += chunk.choices[0].delta.content
    return first, usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, text


def words(count, name):
    return f"Text {name}. " + " ".join(f"{name}{number}" for number in range(count // 3))


def text_of(server, tokens, name):
    """About that many tokens, as the model counts them."""
    text = words(tokens, name)
    status, _, answer = server.call("POST", "/tokenize", {"model": support.ALIAS, "content": text})
    assert status == 200, answer
    share = tokens / len(json.loads(answer)["tokens"])
    return text[: int(len(text) * share)]


def spread_over_replicas():
    with node(4) as server:
        seen = bench("sessions", server)
    check("at least 95 % of turns on their home", seen["at_home"] >= 0.95, f"{100 * seen['at_home']:.1f} %")
    check("busiest / least busy replica at most 1.5", seen["busiest_to_least"] <= 1.5, seen["busiest_to_least"])


def order(server, node, action):
    status, answer = server.admin("POST", f"/clusters/local/pools/{support.ALIAS}/replicas/{node}/{action}", {})
    if status != 200:
        sys.exit(f"bench_sessions: {action} of {node}: {answer}")


def later_turns(hot, conversations=40, turns=4):
    """Milliseconds to the first token of all turns but the first. `hot`: all first turns were one replica's."""
    chance = random.Random(7)
    ranks = range(1, 33)
    lengths = [[32 * chance.choices(ranks, [1 / rank for rank in ranks])[0] for _ in range(turns)]
               for _ in range(conversations)]
    others = [f"local-{number}" for number in (2, 3, 4)]
    with node(4) as server, concurrent.futures.ThreadPoolExecutor(conversations) as pool:
        def take_turn(number, turn, past):
            said = random.Random(f"{number} {turn}").choices(WORDS, k=lengths[number][turn])  # a token each
            content = f"Conversation {number}, turn {turn}: " + " ".join(said)
            first, _, _, answer = ask(server, content, past, tokens=32)
            past += [{"role": "user", "content": content}, {"role": "assistant", "content": answer}]
            return first

        def go_on(number):
            return [take_turn(number, turn, pasts[number]) for turn in range(1, turns)]

        pasts = [[] for _ in range(conversations)]
        for name in others if hot else ():
            order(server, name, "drain")
        list(pool.map(lambda number: take_turn(number, 0, pasts[number]), range(conversations)))
        for name in others if hot else ():
            order(server, name, "resume")
        server.wait_live(4)
        return [first for times in pool.map(go_on, range(conversations)) for first in times]


def with_a_hot_replica(rounds):
    worst = {False: [], True: []}
    for _ in range(rounds):
        for hot, times in worst.items():
            times.append(statistics.quantiles(later_turns(hot), n=100)[98])
    even, hot = (statistics.median(times) for times in worst.values())
    check("a hot replica's conversations: first token's p99 at most 2 x the even case's", hot <= 2 * even,
          f"{hot:.0f} ms, even {even:.0f} ms")


def beside_llama_server(rounds):
    program = vendored.build("llama-server")
    options = ("--conversations", 8, "--turns", 5, "--first-turn-tokens", 1000)
    runs = {"flotilla": [], "llama-server": []}
    for _ in range(rounds):
        with node() as server:
            runs["flotilla"].append(bench("sessions", server, *options))
        with llama_server(program) as server:
            runs["llama-server"].append(bench("sessions", server, *options))
    for side, seen in runs.items():
        turns = zip(*(run["by_turn"] for run in seen), strict=True)
        print(f"{side:<14}" + "".join(
            f"{statistics.median(turn['ttft_p50_ms'] for turn in runs_of_turn):>9.0f} ms"
            f" {100 * statistics.median(turn['cached'] for turn in runs_of_turn):>3.0f} %" for runs_of_turn in turns))


def second_turn():
    with node() as server:
        first = text_of(server, 4000, "a")
        alone, tokens, _, answer = ask(server, first)
        past = [{"role": "user", "content": first}, {"role": "assistant", "content": answer}]
        later, prompt, cached, _ = ask(server, "And then?", past)
    check("second turn: at least 95 % kept", cached >= 0.95 * prompt, f"{cached} of {prompt} tokens")
    check("second turn: first token within 10 % of the first's", later <= 0.1 * alone,
          f"{later:.0f} ms after {alone:.0f} ms for {tokens} tokens")


def one_beginning_for_all():
    with node() as server:
        beginning = text_of(server, 4000, "b")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            seen = list(pool.map(lambda number: ask(server, f"{beginning} Question {number}?"), range(16)))
    computed = sum(prompt - cached for _, prompt, cached, _ in seen)
    check("16 clients compute one beginning", computed <= 1.2 * seen[0][1],
          f"{computed} tokens computed, a prompt has {seen[0][1]}")


def beside_parked(rounds):
    empty, beside = [], []
    with node(context=4096) as server:
        for _ in range(rounds):
            empty.append(bench("burst", server, "--requests", 8, "--max-tokens", 200)["stream_tokens_per_s"])
        for number in range(32):
            ask(server, text_of(server, 2000, f"p{number}-"))
        parked = server.replicas()[0].get("store")
        for _ in range(rounds):
            beside.append(bench("burst", server, "--requests", 8, "--max-tokens", 200)["stream_tokens_per_s"])
    ratio = statistics.median(beside) / statistics.median(empty)
    check("eight streams beside 32 parked conversations at 90 % at least", ratio >= 0.9, f"{100 * ratio:.0f} %, {parked}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    spread_over_replicas()
    with_a_hot_replica(options.rounds)
    second_turn()
    one_beginning_for_all()
    beside_parked(options.rounds)
    beside_llama_server(options.rounds)
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
