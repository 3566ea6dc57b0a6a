"""Ten thousand clients that are there and say nothing, and a thousand that never end what they say."""

import pathlib
import resource
import socket

import pytest

from support import Server, Stream, wait_until

# A request may take two files, so a server takes half as many connections as it may have files.
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
IDLE = min(10_000, FILES // 2 - 600)
SLOW = min(1_000, IDLE)
pytestmark = pytest.mark.waits


@pytest.fixture
def server(start):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the server has as many
    server = start(Server)
    server.load(nodes=1)
    Stream(server.sdk(), "Once, so that all that is made once is there.", max_tokens=8).end()
    yield server
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_kib(server):
    (line,) = [line for line in pathlib.Path(f"/proc/{server.pid}/status").read_text().splitlines()
               if line.startswith("VmRSS:")]
    return int(line.split()[1])


def open_files(server):
    return len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))


def connect(server, number):
    """Of four networks, since one may have half of all connections."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=30, source_address=(f"127.0.0.{2 + number % 4}", 0))


def hold_idle_ones(server):
    """Memory while they are there, and when they have gone."""
    files = open_files(server)
    connections = []
    for number in range(IDLE):
        connection = connect(server, number)
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        connections.append(connection)
    assert open_files(server) >= IDLE
    memory = resident_kib(server)
    Stream(server.sdk(), "Meanwhile", max_tokens=8).end(30)
    for connection in connections:
        connection.close()
    wait_until("their files are closed", lambda: open_files(server) <= files + 16, 60)
    return memory, resident_kib(server)


def test_ten_thousand_idle_ones_or_as_many_as_there_may_be(server):
    before = resident_kib(server)
    during, after = hold_idle_ones(server)
    print(f"{(during - before) / IDLE:.1f} KiB a connection")
    assert (during - before) / IDLE <= 8
    # What they took is kept for the next ones, and is enough for them.
    _, again = hold_idle_ones(server)
    print(f"{before} KiB before, {after} after, {again} after as many again")
    assert again <= 1.1 * after


def test_a_thousand_that_send_their_heads_byte_by_byte(server):
    files = open_files(server)
    slow = [connect(server, number) for number in range(SLOW)]
    for connection in slow:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc")
    wait_until("all are there", lambda: open_files(server) >= files + SLOW)
    Stream(server.sdk(), "Meanwhile", max_tokens=8).end(30)
    # A byte now and then does not make their time longer.
    for connection in slow:
        try:
            connection.sendall(b"a")
        except OSError:
            pass
    wait_until("the server has ended them", lambda: open_files(server) <= files + 16, 60)
    for connection in slow:
        connection.close()
