"""Cells of what was said stay in the replica: the next turn, and whoever shares a beginning, goes on from them."""

import concurrent.futures
import os
import pathlib
import signal

import pytest

from support import ALIAS, MODEL, Runner, Server, run_command, wait_until

WORDS = "the sea was calm and the ship went on under a pale moon while the crew slept below"


def long_text(words, seed=""):
    return seed + " ".join((WORDS + f" on day {number}") for number in range(words // 19))


def say(client, messages, **options):
    options = {"model": ALIAS, "max_tokens": 24, "temperature": 0, "extra_body": {"ignore_eos": True}} | options
    return client.chat.completions.create(messages=messages, **options)


def cached(answer):
    return answer.usage.prompt_tokens_details.cached_tokens


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("sessions"))
    try:
        server.load(nodes=2)
        yield server
    finally:
        server.stop()


def test_the_second_turn_of_a_long_conversation_is_cached(server):
    client = server.sdk()
    messages = [{"role": "system", "content": "You are a patient reader."},
                {"role": "user", "content": long_text(1600)}]
    first = say(client, messages)
    assert first.usage.prompt_tokens > 1600 and cached(first) == 0
    messages += [{"role": "assistant", "content": first.choices[0].message.content},
                 {"role": "user", "content": "And then?"}]
    second = say(client, messages)
    assert cached(second) >= 0.95 * second.usage.prompt_tokens
    assert cached(second) < second.usage.prompt_tokens
    streamed = list(say(client, messages, stream=True, stream_options={"include_usage": True}))
    assert streamed[-1].usage.prompt_tokens_details.cached_tokens >= 0.95 * second.usage.prompt_tokens
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices) == \
        second.choices[0].message.content


def test_cached_and_computed_answers_are_the_same(server, start):
    messages = [{"role": "user", "content": long_text(600, "Read this. ")}]
    client = server.sdk()
    first = say(client, messages)
    turns = messages + [{"role": "assistant", "content": first.choices[0].message.content},
                        {"role": "user", "content": "Go on, please."}]
    again = say(client, turns)
    assert cached(again) > 500
    fresh = start(Runner, "--model", MODEL, environment={"SESSION_STORE_BYTES": "0"})
    alone = say(fresh.sdk(), turns)
    assert cached(alone) == 0
    assert again.choices[0].message.content == alone.choices[0].message.content


def test_many_with_one_beginning_compute_it_once(start):
    runner = start(Runner, "--model", MODEL, "--width", "8")
    client = runner.sdk()
    beginning = long_text(1200)
    shared = say(client, [{"role": "user", "content": "warm up"}]).usage.prompt_tokens
    assert shared < 60

    def ask_one(number):
        return say(client, [{"role": "user", "content": f"{beginning} Question {number}?"}], max_tokens=4)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask_one, range(16)))
    prompt = answers[0].usage.prompt_tokens
    assert prompt > 1200
    computed = sum(answer.usage.prompt_tokens - cached(answer) for answer in answers)
    assert computed < 1.3 * prompt, [cached(answer) for answer in answers]


def test_a_conversation_that_is_asked_twice_at_once_stays_whole(server):
    client = server.sdk()
    messages = [{"role": "user", "content": long_text(400, "Listen. ")}]
    first = say(client, messages)
    messages += [{"role": "assistant", "content": first.choices[0].message.content}]
    questions = ["Why?", "When?", "Who?", "Where?"]

    def ask_one(question):
        return say(client, messages + [{"role": "user", "content": question}]).choices[0].message.content

    one_by_one = [ask_one(question) for question in questions]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask_one, questions)) == one_by_one


def test_choices_of_one_request_share_its_prompt(start):
    runner = start(Runner, "--model", MODEL, "--width", "4")
    messages = [{"role": "user", "content": long_text(600)}]
    answer = say(runner.sdk(), messages, n=4, temperature=1, max_tokens=8)
    assert len({choice.message.content for choice in answer.choices}) > 1
    again = say(runner.sdk(), messages, temperature=1, max_tokens=8)
    assert cached(again) == again.usage.prompt_tokens - 1


def test_a_memory_limit_bounds_all_of_a_runner(start, tmp_path):
    refused = run_command("runner", "--port", "0", "--model", MODEL, "--memory-limit", "100MiB")
    assert refused.returncode == 1 and "memory limit is 100 MiB" in refused.stderr
    # 2 x 1,024 cells and the weights are about 250 MiB; what is left holds a few conversations.
    runner = start(Runner, "--model", MODEL, "--width", "2", "--context", "1024", "--memory-limit", "320MiB")
    client = runner.sdk()
    for number in range(9):
        messages = [{"role": "user", "content": long_text(600, f"Number {number}. ")}]
        assert cached(say(client, messages, max_tokens=2)) == 0
    assert cached(say(client, messages, max_tokens=2)) > 500, "the last one is kept"
    resident = int((pathlib.Path("/proc") / str(runner.pid) / "statm").read_text().split()[1]) * 4096
    assert resident < 320 << 20


def test_what_memory_has_no_room_for_lies_on_the_disk_and_outlives_a_killed_runner(start):
    """Memory for one of three conversations; a runner that is started again finds the others."""
    server = start(Server, environment={"SESSION_STORE_BYTES": "20000000", "SESSION_STORE_DISK_BYTES": "400000000"})
    server.load(nodes=1)
    client = server.sdk()
    talks = [[{"role": "user", "content": long_text(500, f"{name} writes: ")}] for name in ("Ann", "Bob", "Cid")]
    for talk in talks:
        talk += [{"role": "assistant", "content": say(client, talk).choices[0].message.content},
                 {"role": "user", "content": "And then?"}]
    wait_until("two of them are on the disk", lambda: server.replicas()[0]["session_store_disk_bytes"] > 20_000_000)
    files = list(server.state.rglob("*.cells"))
    assert files and all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert cached(say(client, talks[0])) > 500
    (runner,) = server.runners()
    os.kill(runner, signal.SIGKILL)
    wait_until("another runner serves", lambda: server.replicas()[0]["live"] and server.runners() != [runner])
    assert cached(say(client, talks[1])) > 500
    assert server.admin("POST", "/clusters/local/unload", {})[0] == 200
    assert not list(server.state.rglob("*.cells")), "an unloaded model leaves no conversation behind"
