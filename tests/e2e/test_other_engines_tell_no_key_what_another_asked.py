"""An engine that is not ours has one cache for all keys. The engine here is the test's own: it says of each prompt
that most of its tokens were cached, by every name that is known of engines."""

import http.server
import json
import threading

import pytest

from support import Server

PROMPT, HAD = 9_000_000, 7_654_321  # no number that stands in an answer by chance
CACHED = {"tokens_cached": HAD, "timings": {"cache_n": HAD}, "prompt_progress": {"cache": HAD}}
USAGE = {"prompt_tokens": PROMPT, "completion_tokens": 1, "total_tokens": PROMPT + 1, "prompt_cache_hit_tokens": HAD,
         "prompt_tokens_details": {"cached_tokens": HAD}}


class Engine(http.server.ThreadingHTTPServer):
    """`owner`: what its list of models says; `bodies`: what it was asked, but for probes."""

    daemon_threads = True

    def __init__(self, owner):
        self.owner, self.bodies = owner, []
        super().__init__(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer("application/json", json.dumps({"data": [{"id": "m", "owned_by": self.server.owner}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            return self.answer("application/json", json.dumps({
                "object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}],
                "usage": USAGE}))
        if "secret plan" in json.dumps(body):
            self.server.bodies.append(body)
        chunks = ({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "aye"}}]} | CACHED,
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]} | CACHED,
                  {"choices": [], "usage": USAGE} | CACHED)
        self.answer("text/event-stream",
                    "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n")

    def answer(self, kind, text):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def serve(start):
    """serve(owner, ...): a server with such an engine, and the engine."""
    engines = []

    def make(owner, share=None, **options):
        engines.append(Engine(owner))
        server = start(Server, **options)
        load = {} if share is None else {"share_prefixes": share}
        server.load(nodes=[{"id": "far", "transport": "http", "url": engines[-1].url}], model="any", alias="pool",
                    batch=False, **load)
        return server, engines[-1]

    yield make
    for engine in engines:
        engine.shutdown()
        engine.server_close()


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
