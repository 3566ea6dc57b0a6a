"""POST /admin/nodes/test of a server that is not ours: it answers, or the answer names what to mend."""

import contextlib
import socket

import pytest

from other_engine import Answers, Engine
from support import Runner, Server

KEY = "upstream-secret-4711"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


class Refuses(Answers):
    """Lists a model to who has its key, and says that key when it refuses. The engine's `listed`: whether it lists
    any; `knows`: the only name that it takes."""

    def do_GET(self):
        if not self.path.startswith("/v1/"):
            return self.send_error(404)
        if self.headers.get("Authorization") not in (f"Bearer {KEY}", "Bearer half"):
            return self.send_error(401)
        super().do_GET()

    def models(self):
        return [{"id": "its-model", "object": "model", "owned_by": "vllm"}] if self.server.listed else []

    def answer(self, body):
        said = self.headers["Authorization"].removeprefix("Bearer ")
        if said != KEY:
            return self.whole({"error": {"message": f"no such key: {said}"}}, 401)
        if body["model"] != self.server.knows:
            return self.whole({"error": {"message": f"no model {body['model']}"}}, 404)
        self.stream(["a"])


@contextlib.contextmanager
def refusing(listed=True, knows="its-model"):
    one = Engine(Refuses)
    one.listed, one.knows = listed, knows
    with one:
        yield one


@pytest.fixture
def engine():
    with refusing() as one:
        yield one


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
    status, answer = try_node(server, engine.url, api_key=KEY)
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
    status, answer = try_node(server, engine.url, **more)
    assert status == 422 and answer["detail"].endswith(words), answer


def test_another_path_and_an_empty_list_are_named(server, engine):
    status, answer = try_node(server, f"http://127.0.0.1:{engine.port}/api", api_key=KEY)
    assert status == 422 and "correct url" in answer["detail"], answer
    with refusing(listed=False) as empty:
        status, answer = try_node(server, empty.url, api_key=KEY)
        assert status == 422 and "set upstream_model" in answer["detail"], answer


def test_a_key_that_the_engine_says_is_not_shown(server):
    with refusing(knows="x") as other:
        more = {"api_key": "half", "upstream_model": "x"}
        _, answer = try_node(server, other.url, **more)
        assert "no such key: (hidden)" in answer["detail"], answer


def test_the_key_of_a_stored_node_is_used_for_its_own_url_alone(server, engine):
    url = engine.url
    node = {"id": "far", "transport": "http", "url": url, "api_key": KEY}
    assert server.admin("PUT", "/clusters/lab", {"nodes": [node]})[0] == 201
    assert try_node(server, url)[0] == 200
    assert try_node(server, url.replace("127.0.0.1", "localhost"))[0] == 422
