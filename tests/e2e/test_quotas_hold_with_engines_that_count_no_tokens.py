"""The engine here is the test's own: it says one word a token, and never how many tokens there were. Asked for much, it
waits in the middle of its answer until the test lets it go on."""

import contextlib
import http.server
import json
import threading

import openai
import pytest

from support import Server, wait_until

MUCH = 1000


class Engine(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        self.go_on = threading.Event()
        super().__init__(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.begin("application/json")
        self.wfile.write(b'{"data": [{"id": "m"}]}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with contextlib.suppress(ConnectionError):  # whoever asked may leave
            self.speak(body.get("max_tokens") or 1)

    def speak(self, tokens):
        self.begin("text/event-stream")
        for number in range(tokens):
            if tokens == MUCH and number == MUCH // 2:
                self.wfile.flush()
                self.server.go_on.wait(60)
            self.say({"content": "word "})
        self.say({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def say(self, delta, finish=None):
        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())

    def begin(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def engine():
    engine = Engine()
    yield engine
    engine.go_on.set()
    engine.shutdown()
    engine.server_close()


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
