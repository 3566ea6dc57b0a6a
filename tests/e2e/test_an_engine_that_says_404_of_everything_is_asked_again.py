"""mlx_lm.server says 404 of whatever went wrong with a request, and its health check knows nothing of it."""

import openai
import pytest

from other_engine import Answers, Engine
from support import Server, ask, wait_until


class Breaks(Answers):
    """`broken`: it has answered for the last time; `probes`: how often it was asked whether it answers."""

    def answer(self, body):
        asked = body["messages"][0]["content"]
        self.server.probes += asked == "hi"
        if self.server.broken or "forbidden" in asked:
            self.whole({"error": "the generation thread is gone"}, 404)
        else:
            self.stream(["aye"])


@pytest.fixture
def engine():
    engine = Engine(Breaks)
    engine.broken, engine.probes = False, 0
    with engine:
        yield engine


@pytest.fixture
def server(start, engine):
    server = start(Server, environment={"REPLICA_WATCHDOG_S": "3"})
    server.put_cluster([{"id": "far", "transport": "http", "url": engine.url}])
    return server


LOAD = {"model": "any", "alias": "pool", "batch": False}


def refused(server, text):
    with pytest.raises(openai.BadRequestError):
        ask(server.sdk(), text, model="pool")


def test_one_that_is_healthy_and_has_no_token_is_not_ready(server, engine):
    engine.broken = True
    status, answer = server.admin("POST", "/clusters/local/load", LOAD)
    assert status == 502 and "does not answer a one-token request" in answer["detail"], answer
    assert "the generation thread is gone" in answer["detail"]


def test_one_that_answers_nothing_any_more_is_out_until_it_does(server, engine):
    server.load(**LOAD)
    engine.broken = True
    for _ in range(4):
        refused(server, "Hello")
    wait_until("it is out", lambda: not server.replicas("pool")[0]["live"], 20)
    assert "4 requests in a row with 404" in server.log()
    assert "the generation thread is gone" in server.replicas("pool")[0]["last_error"]
    engine.broken = False
    server.wait_live(1, alias="pool")
    assert ask(server.sdk(), model="pool").choices[0].message.content == "aye"


def test_requests_that_it_refuses_take_nobody_out(server, engine):
    server.load(**LOAD)
    for _ in range(2):
        before = engine.probes
        wait_until("it is asked", lambda: refused(server, "forbidden") or engine.probes > before, 20)
        assert ask(server.sdk(), model="pool").choices[0].message.content == "aye"
    replica = server.replicas("pool")[0]
    assert replica["live"] and replica["restarts"] == 0
