import json
import signal

import openai
import pytest

from support import ALIAS, MODEL, Server, Stream, ask, is_runner, wait_until

SLOW = {"FLOTILLA_SYNTHETIC_STEP_US": "10000"}  # a token of the made-up model


@pytest.mark.parametrize("number, model", [(signal.SIGINT, MODEL), (signal.SIGTERM, "synthetic")],
                         ids=["SIGINT", "SIGTERM"])
def test_stream_under_way_is_whole(start, number, model):
    server = start(Server, environment=SLOW | {"AGENT_GRACE_S": "1"})  # SIGTERM leaves them for so long
    server.load(nodes=1, model=str(model), alias=ALIAS)
    runners = server.runners()
    assert len(runners) == 1
    stream = Stream(server.sdk(), "A long story", max_tokens=150, extra_body={"ignore_eos": True})
    stream.begun.wait(30)
    server.signal(number)
    assert stream.end().usage.completion_tokens == 150
    assert server.wait(20) == 0
    wait_until("no runner is left", lambda: not any(map(is_runner, runners)))


def test_nothing_new_is_taken(start):
    server = start(Server, environment=SLOW)
    server.load(nodes=1, model="synthetic", alias=ALIAS)
    client = server.sdk()
    stream = Stream(client, "A long story", max_tokens=150, extra_body={"ignore_eos": True})
    stream.begun.wait(30)
    server.signal(signal.SIGINT)
    wait_until("it drains", lambda: "draining" in server.log())
    with pytest.raises((openai.APIConnectionError, openai.InternalServerError)):
        ask(client, max_tokens=2)
    stream.end()
    assert server.wait(20) == 0


def test_idle_server_ends_within_seconds(start):
    server = start(Server)
    server.load(nodes=2)
    server.signal(signal.SIGINT)
    assert server.wait(10) == 0


def test_while_a_model_is_loading(start):
    server = start(Server)
    server.put_cluster(2)
    connection = server.connection()
    connection.request("POST", "/admin/clusters/local/load", json.dumps({"model": str(MODEL)}),
                       {"Content-Type": "application/json"})
    runners = wait_until("runners start", server.runners)
    server.signal(signal.SIGINT)
    assert server.wait(20) == 0
    wait_until("no runner is left", lambda: not any(map(is_runner, runners)))


def test_a_hangup_ends_nothing(start):
    server = start(Server)
    server.load(nodes=1, model="synthetic")
    stream = Stream(server.sdk(), "A long story", model="synthetic", max_tokens=300)
    assert stream.begun.wait(30)
    server.signal(signal.SIGHUP)
    wait_until("it is told", lambda: "SIGHUP: there is no certificate" in server.log())
    stream.end()
    assert ask(server.sdk(), model="synthetic", max_tokens=2).choices
