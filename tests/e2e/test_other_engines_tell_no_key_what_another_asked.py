"""An engine that is not ours has one cache for all keys. The engine here is the test's own: it says of each prompt
that most of its tokens were cached, by every name that is known of engines."""

import contextlib
import json

import pytest

from other_engine import Answers, Engine
from support import Server

PROMPT, HAD = 9_000_000, 7_654_321  # no number that stands in an answer by chance
CACHED = {"tokens_cached": HAD, "timings": {"cache_n": HAD}, "prompt_progress": {"cache": HAD}}
USAGE = {"prompt_tokens": PROMPT, "completion_tokens": 1, "total_tokens": PROMPT + 1, "prompt_cache_hit_tokens": HAD,
         "prompt_tokens_details": {"cached_tokens": HAD}}


class Counts(Answers):
    """The engine's `owner` is what its list of models says; `bodies`: what it was asked, but for probes."""

    def models(self):
        return [{"id": "m", "owned_by": self.server.owner}]

    def answer(self, body):
        if self.path.endswith("/embeddings"):
            return self.whole({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}],
                               "usage": USAGE})
        if "secret plan" in json.dumps(body):
            self.server.bodies.append(body)
        self.begin("text/event-stream")
        self.chunk({"role": "assistant", "content": "aye"}, **CACHED)
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]} | CACHED)
        self.event({"choices": [], "usage": USAGE} | CACHED)
        self.done()


@pytest.fixture
def serve(start):
    """serve(owner, ...): a server with such an engine, and the engine."""
    with contextlib.ExitStack() as engines:
        def make(owner, share=None, **options):
            engine = Engine(Counts)
            engine.owner, engine.bodies = owner, []
            engines.enter_context(engine)
            server = start(Server, **options)
            load = {} if share is None else {"share_prefixes": share}
            server.load(nodes=[{"id": "far", "transport": "http", "url": engine.url}], model="any", alias="pool",
                        batch=False, **load)
            return server, engine

        yield make


def make_key(server, name, **settings):
    status, answer = server.admin("POST", "/keys", {"name": name} | settings)
    assert status == 201, answer
    return answer


def all_that_is_told(server, key=None):
    """Whatever a caller gets to read of one question: the answers, its own requests, the metrics."""
    headers = {"x-api-key": key["secret"]} if key else {"Authorization": None}
    question = {"model": "pool", "messages": [{"role": "user", "content": "the secret plan"}]}
    told = ""
    for path, body in (("/v1/chat/completions", question),
                       ("/v1/chat/completions", question | {"stream": True}),
                       ("/v1/chat/completions", question | {"stream": True, "stream_options": {"include_usage": True}}),
                       ("/v1/messages", question | {"max_tokens": 9}),
                       ("/v1/responses", {"model": "pool", "input": "the secret plan"}),
                       ("/v1/embeddings", {"model": "pool", "input": "the secret plan"})):
        status, answered, text = server.call("POST", path, body, headers)
        assert status == 200, text
        answered = {name.lower(): value for name, value in dict(answered).items()}
        status, _, request = server.call("GET", "/v1/requests/" + answered["x-request-id"], headers=headers)
        assert status == 200, request
        told += text + request
    _, _, metrics = server.call("GET", "/metrics", headers=headers if key else {})
    counted = [line for line in metrics.splitlines() if line.startswith("flotilla_cached_prompt_tokens_total")]
    return told, sum(float(line.split()[-1]) for line in counted)


@pytest.mark.parametrize("apart", ["by keys", "by the admin token"])
def test_what_was_cached_is_told_to_nobody_where_callers_are_told_apart(serve, apart):
    server, engine = serve("llamacpp", **({"token": "the-admin-token"} if "token" in apart else {}))
    told, counted = all_that_is_told(server, make_key(server, "mine") if "keys" in apart else None)
    assert str(HAD) not in told and counted == 0
    assert str(PROMPT) in told and '"cached_tokens":0' in told
    assert engine.bodies and all("cache_salt" not in body for body in engine.bodies)


def test_it_is_told_where_nobody_is_told_apart(serve):
    server, _ = serve("llamacpp")
    told, counted = all_that_is_told(server)
    assert f'"prompt_tokens_details":{{"cached_tokens":{HAD}}}' in told and counted >= HAD


def test_the_load_may_say_that_prefixes_are_shared(serve):
    server, engine = serve("vllm", share=True)
    told, counted = all_that_is_told(server, make_key(server, "mine"))
    assert f'"cached_tokens":{HAD}' in told and counted >= HAD
    assert engine.bodies and all("cache_salt" not in body for body in engine.bodies)


def test_an_engine_that_can_keeps_the_prefixes_of_cache_groups_apart(serve):
    server, engine = serve("vllm")
    keys = [make_key(server, "mine"), make_key(server, "theirs"),
            make_key(server, "one", cache_group="team"), make_key(server, "other", cache_group="team")]
    salts = []
    for key in keys:
        engine.bodies.clear()
        assert f'"cached_tokens":{HAD}' in all_that_is_told(server, key)[0], "it is the key's own"
        assert len(engine.bodies) == 5
        salts.append({body["cache_salt"] for body in engine.bodies})
        sent = json.dumps(engine.bodies)
        assert key["id"] not in sent and key["name"] not in sent and "team" not in sent
    assert all(len(salt) == 1 for salt in salts)
    assert salts[2] == salts[3] and len(set.union(*salts)) == 3
