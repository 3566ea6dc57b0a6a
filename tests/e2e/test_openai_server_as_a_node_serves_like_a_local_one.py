import json
import os
import signal

import anthropic
import openai
import pytest

from other_engine import Answers, Engine
from support import ALIAS, MODEL, Runner, Server, Stream, ask, wait_until


@pytest.fixture
def runner(start):
    return start(Runner, "--model", MODEL, "--width", "4", "--alias", "upstream-name")


@pytest.fixture
def server(start, runner):
    server = start(Server)
    server.load(nodes=[{"id": "far", "transport": "http", "url": runner.url + "/v1",
                        "upstream_model": "upstream-name"}])
    return server


def test_answers_carry_the_alias_and_the_node(server):
    answer = ask(server.sdk(), max_tokens=8)
    assert answer.model == ALIAS
    assert answer.choices[0].message.content
    assert answer.x_flotilla["node"] == "far"
    stream = Stream(server.sdk(), "Hello", max_tokens=8).end()
    assert stream.usage.completion_tokens <= 8
    assert stream.served["node"] == "far"


def test_other_forms_reach_it_as_chat(server):
    question = [{"role": "user", "content": "Hello"}]
    message = server.anthropic().messages.create(model=ALIAS, max_tokens=8, messages=question)
    assert message.model == ALIAS and message.content[0].text
    as_chat = server.sdk().chat.completions.create(model=ALIAS, max_tokens=8, messages=question, temperature=0)
    with server.anthropic().messages.stream(model=ALIAS, max_tokens=8, messages=question,
                                           extra_body={"temperature": 0}) as stream:
        last = stream.get_final_message()
    assert last.usage.output_tokens == as_chat.usage.completion_tokens > 0
    assert last.content[0].text == as_chat.choices[0].message.content
    assert server.sdk().responses.create(model=ALIAS, input="Hello", max_output_tokens=8).output_text
    with pytest.raises(openai.BadRequestError):
        server.sdk().completions.create(model=ALIAS, prompt="Hello")
    with pytest.raises(anthropic.BadRequestError) as caught:
        server.anthropic().messages.count_tokens(model=ALIAS, messages=question)
    assert "another engine" in caught.value.message


def test_vectors_are_its_own_under_our_name(server, runner):
    ours = server.sdk().embeddings.create(model=ALIAS, input=["Hello", "world"])
    theirs = runner.sdk().embeddings.create(model="upstream-name", input=["Hello", "world"])
    assert ours.model == ALIAS
    assert [item.embedding for item in ours.data] == [item.embedding for item in theirs.data]
    assert ours.usage.prompt_tokens == theirs.usage.prompt_tokens > 0


def test_usage_is_hidden_when_it_was_not_asked_for(server):
    assert all(chunk.usage is None for chunk in ask(server.sdk(), stream=True, max_tokens=4))


def test_one_that_comes_back_with_another_url_is_asked_there(start, runner):
    other = start(Runner, "--model", MODEL, "--width", "4", "--alias", "upstream-name")
    server = start(Server)
    far, near = {"id": "far", "transport": "http"}, {"id": "near"}
    server.load(nodes=[far | {"url": runner.url + "/v1"}, near])
    server.put_cluster([near])
    wait_until("it is gone", lambda: [replica["node"] for replica in server.replicas()] == ["near"])
    runner.signal(signal.SIGKILL)
    server.put_cluster([far | {"url": other.url + "/v1"}, near])
    server.wait_live(2)
    streams = [Stream(server.sdk(), f"Story {number}", max_tokens=30) for number in range(8)]
    assert {stream.end().served["node"] for stream in streams} == {"far", "near"}


class WantsKey(Answers):
    def answer(self, body):
        self.server.told.add(self.headers["Authorization"])
        self.stream(["aye"])


def test_it_is_asked_with_its_own_key_which_is_shown_to_nobody(start):
    engine = Engine(WantsKey)
    engine.told = set()
    with engine:
        server = start(Server)
        server.load(nodes=[{"id": "far", "transport": "http", "url": engine.url, "api_key": "of-the-engine-4711"}],
                    model="any", alias="pool", batch=False)
        assert ask(server.sdk(api_key="of-the-client"), model="pool").choices[0].message.content == "aye"
    assert engine.told == {"Bearer of-the-engine-4711"}
    for path in ("/admin/clusters/local", "/admin/nodes", "/admin/clusters/local/status", "/admin/events"):
        assert "4711" not in json.dumps(server.get_json(path)), path
    assert "4711" not in server.log()


def test_mixed_with_local_nodes(start, runner):
    server = start(Server)
    server.load(nodes=[{"id": "far", "transport": "http", "url": runner.url + "/v1"}, {"id": "near"}])
    streams = [Stream(server.sdk(), f"Story {number}", max_tokens=30) for number in range(8)]
    assert {stream.end().served["node"] for stream in streams} == {"far", "near"}


def test_what_has_begun_here_goes_on_here_and_is_not_begun_anew_there(start, runner):
    server = start(Server, environment={"REPLICA_BACKOFF_MIN_S": "0.2"})
    server.load(nodes=[{"id": "far", "transport": "http", "url": runner.url + "/v1"}, {"id": "near"}])
    options = {"max_tokens": 120, "extra_body": {"ignore_eos": True}}
    streams = [Stream(server.sdk(), f"Story {number}", **options) for number in range(8)]
    wait_until("all stream", lambda: all(stream.pieces > 20 for stream in streams))
    os.kill(server.runners()[0], signal.SIGKILL)
    for stream in streams:
        assert stream.end().usage.completion_tokens == 120
        assert stream.pieces <= 120, "a part of it came twice"
    resumed = [stream.served["node"] for stream in streams if stream.served["resumed"]]
    assert resumed and set(resumed) == {"near"}


def test_node_that_ends_is_dropped(server, runner):
    runner.signal(signal.SIGKILL)
    wait_until("the node is out", lambda: server.pool()["replicas_live"] == 0, 40)
