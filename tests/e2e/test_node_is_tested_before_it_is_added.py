"""POST /admin/nodes/test of a server that is not ours: it answers, or the answer names what to mend."""

import http.server
import json
import socket
import threading

import pytest
from support import Runner, Server

KEY = "upstream-secret-4711"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


class Engine:
    """A server that lists a model to who has its key, and says that key when it refuses."""

    def __init__(self, listed=True, knows="its-model"):
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                if not self.path.startswith("/v1/"):
                    return self.send_error(404)
                if self.headers.get("Authorization") not in (f"Bearer {KEY}", "Bearer half"):
                    return self.send_error(401)
                models = [{"id": "its-model", "object": "model", "owned_by": "vllm"}] if listed else []
                return self.say(200, {"object": "list", "data": models})

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                said = self.headers["Authorization"].removeprefix("Bearer ")
                if said != KEY:
                    return self.say(401, {"error": {"message": f"no such key: {said}"}})
                if asked["model"] != knows:
                    return self.say(404, {"error": {"message": f"no model {asked['model']}"}})
                chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": knows,
                         "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "length"}]}
                return self.say(200, f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", "text/event-stream")

            def say(self, status, body, kind="application/json"):
                text = (body if isinstance(body, str) else json.dumps(body)).encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def engine():
    one = Engine()
    yield one
    one.close()


def try_node(server, url, **more):
    return server.admin("POST", "/nodes/test", {"id": "far", "transport": "http", "url": url} | more)


def test_one_that_serves_says_what(server, start):
    from support import MODEL

    runner = start(Runner, "--model", MODEL, "--alias", "upstream-name")
    status, answer = try_node(server, f"{runner.url}/v1")
    assert (status, answer["reachable"], answer["model"]) == (200, True, "upstream-name")
    assert answer["took_ms"] > 0 and answer["version"] == ""
    assert try_node(server, runner.url)[0] == 200, "/v1 is meant, as people write it"


def test_one_with_a_key_is_told_its_name(server, engine):
    status, answer = try_node(server, f"http://127.0.0.1:{engine.port}/v1", api_key=KEY)
    assert (status, answer["model"], answer["engine"]) == (200, "its-model", "vllm")


def test_nobody_there_names_the_url(server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        status, answer = try_node(server, f"http://127.0.0.1:{free.getsockname()[1]}/v1")
    assert status == 422 and "cannot connect" in answer["detail"]
    assert "start the server there" in answer["detail"] and "correct url" in answer["detail"]


@pytest.mark.parametrize(("more", "words"), [
    ({}, "it wants a key: set api_key"),
    ({"api_key": "wrong"}, "correct api_key"),
    ({"api_key": "half"}, "correct api_key"),
    ({"api_key": KEY, "upstream_model": "other"}, "set upstream_model to a name that it knows"),
])
def test_what_is_wrong_with_its_description_is_named(server, engine, more, words):
    status, answer = try_node(server, f"http://127.0.0.1:{engine.port}/v1", **more)
    assert status == 422 and answer["detail"].endswith(words), answer


def test_another_path_and_an_empty_list_are_named(server, engine):
    status, answer = try_node(server, f"http://127.0.0.1:{engine.port}/api", api_key=KEY)
    assert status == 422 and "correct url" in answer["detail"], answer
    empty = Engine(listed=False)
    try:
        status, answer = try_node(server, f"http://127.0.0.1:{empty.port}/v1", api_key=KEY)
        assert status == 422 and "set upstream_model" in answer["detail"], answer
    finally:
        empty.close()


def test_a_key_that_the_engine_says_is_not_shown(server):
    other = Engine(knows="x")
    try:
        more = {"api_key": "half", "upstream_model": "x"}
        _, answer = try_node(server, f"http://127.0.0.1:{other.port}/v1", **more)
        assert "no such key: (hidden)" in answer["detail"], answer
    finally:
        other.close()


def test_the_key_of_a_stored_node_is_used_for_its_own_url_alone(server, engine):
    url = f"http://127.0.0.1:{engine.port}/v1"
    node = {"id": "far", "transport": "http", "url": url, "api_key": KEY}
    assert server.admin("PUT", "/clusters/lab", {"nodes": [node]})[0] == 201
    assert try_node(server, url)[0] == 200
    assert try_node(server, url.replace("127.0.0.1", "localhost"))[0] == 422
