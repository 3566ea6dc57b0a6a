"""What a client of each API sees when things go wrong: too large, too many, nobody there, cut in the middle."""

import json
import socket
import threading

import anthropic
import openai
import pytest

from support import ALIAS, Server, ask, wait_until

STORY = "Tell me a long story about a ship."
BODIES = {
    "/v1/messages": {"max_tokens": 1500, "messages": [{"role": "user", "content": STORY}]},
    "/v1/completions": {"max_tokens": 1500, "prompt": STORY},
    "/v1/responses": {"max_output_tokens": 1500, "input": STORY},
}


def send(server, path, stream=True, **fields):
    body = json.dumps({"model": ALIAS, "stream": stream, "ignore_eos": True} | BODIES[path] | fields).encode()
    head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    connection.sendall(head.encode() + body)
    return connection


def slow_server(start, **environment):
    """The made-up model at 10 ms a token: an answer of BODIES takes 15 s unless something ends it."""
    return start(Server, environment={"FLOTILLA_SYNTHETIC_STEP_US": "10000"} | environment)


def busy(server):
    return sum(replica["busy_count"] for replica in server.replicas())


@pytest.mark.parametrize("path", BODIES)
def test_a_client_that_leaves_frees_its_place(shared, path):
    streamed, whole = send(shared, path), send(shared, path, stream=False)
    assert streamed.recv(4096)
    wait_until("both run", lambda: busy(shared) == 2)
    streamed.close()
    whole.close()
    shared.wait_idle(5)


@pytest.mark.parametrize("path, event", [
    ("/v1/messages", b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"),
    ("/v1/completions", b"data: {\"error\":{\"message\":"),
    ("/v1/responses", b"event: response.failed\ndata: "),
])
def test_what_is_cut_in_the_middle_ends_with_an_error(start, path, event):
    server = slow_server(start)
    server.load(nodes=1, model="synthetic", alias=ALIAS)
    connection = send(server, path)
    received = connection.recv(65536)
    assert received.startswith(b"HTTP/1.1 200")
    status, answer = server.admin("POST", "/clusters/local/unload", {"force": True})
    assert status == 200, answer
    while piece := connection.recv(65536):
        received += piece
        if received.endswith(b"0\r\n\r\n"):
            break
    assert event in received
    for whole in (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete"):
        assert whole not in received


@pytest.mark.parametrize("method, path, body, wanted", [("POST", "/admin/login", b"x" * 20_000, 413),
                                                        ("PATCH", "/admin/clusters", None, 405),
                                                        ("POST", "/admin/nothing", b"{}", 404)])
def test_what_the_administration_refuses_unread_is_a_problem_too(shared, method, path, body, wanted):
    status, headers, text = shared.call(method, path, body)
    assert status == wanted and headers["Content-Type"] == "application/problem+json"
    assert json.loads(text)["status"] == wanted and json.loads(text)["detail"]


def test_too_large_too_many_and_nobody(start):
    server = slow_server(start, BODY_MAX_BYTES="100000", QUEUE_MAX="1")
    server.load(nodes=1, model="synthetic", alias=ALIAS, batch=False)
    client = server.anthropic()
    question = {"model": ALIAS, "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}

    with pytest.raises(anthropic.RequestTooLargeError) as large:
        client.messages.create(**question | {"system": "x" * 200_000})
    assert large.value.body["error"]["type"] == "request_too_large"

    running, waiting = send(server, "/v1/messages"), send(server, "/v1/responses")
    wait_until("one runs, one waits", lambda: busy(server) == 1 and server.pool()["queue_depth"] == 1)
    with pytest.raises(anthropic.RateLimitError) as many:
        client.messages.create(**question)
    assert many.value.body["error"]["type"] == "rate_limit_error"
    assert int(many.value.response.headers["retry-after"]) >= 1
    with pytest.raises(openai.RateLimitError):
        server.sdk().responses.create(model=ALIAS, input="hi")
    with pytest.raises(openai.RateLimitError):
        server.sdk().completions.create(model=ALIAS, prompt="hi")
    # Clients that try again, as the answer says, are served once there is room.
    seen = {openai: [], anthropic: []}

    def counted(sdk):
        return sdk.DefaultHttpxClient(event_hooks={"response": [lambda answer: seen[sdk].append(answer.status_code)]})

    asked = [threading.Thread(target=work, daemon=True) for work in (
        lambda: ask(server.sdk(max_retries=9, http_client=counted(openai)), max_tokens=5),
        lambda: server.anthropic(max_retries=9, http_client=counted(anthropic)).messages.create(**question))]
    for thread in asked:
        thread.start()
    wait_until("both were refused", lambda: all(429 in statuses for statuses in seen.values()))
    running.close()
    waiting.close()
    for thread in asked:
        thread.join(60)
    for statuses in seen.values():
        assert statuses[-1] == 200 and set(statuses[:-1]) == {429}


def test_nobody_is_there(start):
    server = start(Server)
    status, _, text = server.call("POST", "/v1/messages", {"model": ALIAS, "max_tokens": 1,
                                                           "messages": [{"role": "user", "content": "hi"}]})
    assert status == 404
    assert json.loads(text)["error"]["type"] == "not_found_error"
