"""A load with `speculate` computes several tokens a pass where text repeats itself: the answers are those without it,
alone and together, and the status says how many guesses were right."""

import concurrent.futures
import os
import signal

import pytest

from support import ALIAS, MODEL, Server, Stream, ask, run_command, wait_until

LIST = "Repeat this list three times: " + " ".join(f"{number}. apple, pear and plum;" for number in range(1, 9))
QUESTIONS = [LIST, LIST + " Begin.", "Tell me a story about the sea.", "Count from one to thirty, word by word."]


def answers(server, **options):
    """To every question greedily and with a seed, eight at a time."""
    client = server.sdk()
    asked = [(text, temperature) for text in QUESTIONS for temperature in (0, 0.8)]

    def one(question):
        text, temperature = question
        answer = ask(client, text, temperature=temperature, max_tokens=96, seed=7, **options)
        return answer.choices[0].message.content, answer.choices[0].finish_reason, answer.usage.completion_tokens

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, asked))


def speculate(server):
    return [replica.get("speculate") for replica in server.replicas()]


@pytest.fixture(scope="module")
def drafting(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("drafts"))
    try:
        server.load(nodes=2, speculate="ngram")
        yield server
    finally:
        server.stop()


def test_answers_are_those_of_a_pool_without_drafts(shared, drafting):
    if not drafting.pool()["exact_resume"]:
        wait_until("a reason", lambda: all(one and one["mode"] == "off" and one["reason"] for one in speculate(drafting)))
        pytest.skip("this processor's kernels promise no equal bits, so there are no drafts")
    assert answers(drafting) == answers(shared)
    for text in QUESTIONS:  # one at a time: what a guess may cost is most then
        assert ask(drafting.sdk(), text, temperature=0, max_tokens=64).choices[0].message.content == \
            ask(shared.sdk(), text, temperature=0, max_tokens=64).choices[0].message.content
    assert answers(drafting, stop=["plum", "."]) == answers(shared, stop=["plum", "."])
    wait_until("right guesses", lambda: sum(one["accepted_tokens"] for one in speculate(drafting)) > 50)
    for one in speculate(drafting):
        assert one["mode"] == "ngram" and one["reason"] is None
        assert one["accepted_tokens"] <= one["drafted_tokens"]
        if one["drafted_tokens"]:
            assert one["acceptance_rate"] == pytest.approx(one["accepted_tokens"] / one["drafted_tokens"])
    assert all(one is None for one in speculate(shared)), "nobody asked for drafts there"
    status, _, metrics = drafting.call("GET", "/metrics")
    assert status == 200 and "flotilla_replica_drafted_tokens_total{" in metrics


def test_streams_go_on_with_the_same_words_when_their_replica_is_killed(shared, drafting):
    if not drafting.pool()["exact_resume"]:
        pytest.skip("this processor's kernels promise no equal bits")
    options = {"temperature": 0, "max_tokens": 200, "extra_body": {"ignore_eos": True}}
    wholes = [ask(shared.sdk(), text, **options).choices[0].message.content for text in QUESTIONS]
    streams = [Stream(drafting.sdk(), text, **options) for text in QUESTIONS]
    wait_until("some of each answer", lambda: all(stream.pieces > 2 for stream in streams))
    os.kill(drafting.runners()[0], signal.SIGKILL)
    assert [stream.end().text for stream in streams] == wholes
    drafting.wait_live(2)


def test_where_equal_answers_cannot_be_promised_there_are_no_drafts_and_a_reason(start):
    server = start(Server)
    server.load(nodes=1, speculate="auto", kv_type="q8_0")
    wait_until("a reason", lambda: speculate(server) != [None])
    (one,) = speculate(server)
    assert one["mode"] == "off" and one["reason"] and one["drafted_tokens"] == 0
    assert ask(server.sdk(), LIST, max_tokens=8).choices[0].message.content


def test_what_is_not_there_is_refused_by_name(shared):
    for settings, names in [({"draft_model": "/d.gguf"}, "draft_model"), ({"speculate": "draft"}, "draft models"),
                            ({"speculate": "always"}, "always")]:
        status, answer = shared.admin("POST", "/clusters/local/load", {"model": str(MODEL)} | settings)
        assert status == 400 and names in answer["detail"], answer


def test_the_command_line_asks_for_drafts(start):
    server = start(Server)
    server.put_cluster(1)
    done = server.command("load", "local", MODEL, "--speculate", "auto")
    assert done.returncode == 0, done.stderr
    wait_until("what it does", lambda: speculate(server) != [None])
    status, declared = server.admin("GET", "/declared")
    assert status == 200 and declared["pools"][0]["speculate"] == "auto"
    assert run_command("load", "local", MODEL, "--speculate", "always").returncode != 0
