"""The engine here is the test's own: it says one word a token, and never how many tokens there were. Asked for much, it
waits in the middle of its answer until the test lets it go on."""

import threading

import openai
import pytest

from other_engine import Answers, Engine
from support import Server, wait_until

MUCH = 1000


class Speaks(Answers):
    def answer(self, body):
        self.stream(self.words(body.get("max_tokens") or 1))

    def words(self, count):
        for number in range(count):
            if count == MUCH and number == MUCH // 2:
                self.server.go_on.wait(60)
            yield "word "


@pytest.fixture
def engine():
    with Engine(Speaks) as engine:
        engine.go_on = threading.Event()
        yield engine
        engine.go_on.set()


@pytest.fixture
def server(start, engine):
    server = start(Server)
    server.load(nodes=[{"id": "far", "transport": "http", "url": engine.url}], model="any", alias="pool", batch=False)
    return server


def client_of(server, name):
    status, key = server.admin("POST", "/keys", {"name": name, "tokens_per_min": 300})
    assert status == 201, key
    return server.sdk(api_key=key["secret"])


def ask(client, tokens, **options):
    return client.chat.completions.create(model="pool", max_tokens=tokens, **options,
                                          messages=[{"role": "user", "content": "Hello"}])


def test_a_whole_answer_is_charged_by_its_pieces(server):
    client = client_of(server, "whole")
    assert ask(client, 500).choices[0].message.content.count("word") == 500
    with pytest.raises(openai.RateLimitError) as refused:
        ask(client, 1)
    assert "300 tokens a minute" in str(refused.value)


def test_who_leaves_in_the_middle_pays_for_what_came(server):
    client = client_of(server, "leaves")
    stream = ask(client, MUCH, stream=True)
    for _, _ in zip(range(MUCH // 2), stream):
        pass
    with pytest.raises(openai.RateLimitError):  # while it is made
        ask(client, 1)
    stream.close()
    wait_until("it has ended", lambda: server.get_json("/admin/keys")["keys"][0]["in_flight"] == 0)
    with pytest.raises(openai.RateLimitError):
        ask(client, 1)
