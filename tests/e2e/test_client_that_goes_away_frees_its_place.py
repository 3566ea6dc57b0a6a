import json
import socket

from support import ALIAS, Stream, wait_until


def send_request(server, stream):
    body = json.dumps({"model": ALIAS, "stream": stream, "max_tokens": 1500, "ignore_eos": True,
                       "messages": [{"role": "user", "content": "A long story"}]}).encode()
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(head.encode() + body)
    return connection


def busy(server):
    return sum(replica["busy_count"] for replica in server.replicas())


def test_streams_that_are_closed(shared):
    connections = [send_request(shared, stream=True) for _ in range(10)]
    for connection in connections:
        assert connection.recv(4096)
    assert busy(shared) == 10
    for connection in connections:
        connection.close()
    shared.wait_idle(5)


def test_request_that_waits_for_its_whole_answer(shared):
    connection = send_request(shared, stream=False)
    wait_until("it runs", lambda: busy(shared) == 1)
    connection.close()
    shared.wait_idle(5)


def test_client_that_shuts_its_write_side(shared):
    connection = send_request(shared, stream=True)
    assert connection.recv(4096)
    connection.shutdown(socket.SHUT_WR)
    shared.wait_idle(5)
    connection.close()


def test_requests_that_still_wait_in_the_queue(shared):
    connections = [send_request(shared, stream=True) for _ in range(40)]
    wait_until("some wait", lambda: shared.pool()["queue_depth"] > 0)
    for connection in connections:
        connection.close()
    shared.wait_idle(10)
    assert shared.pool()["queue_depth"] == 0
    Stream(shared.sdk(), "Hello", max_tokens=4).end()
