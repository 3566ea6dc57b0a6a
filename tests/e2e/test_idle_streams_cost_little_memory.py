import json
import pathlib
import resource
import socket

import pytest
from support import Server, wait_until

PLACES = 64  # of a replica at most
EACH_MAX_KIB = 64
BESIDE = 1000  # files that are no stream's
RESTING_MAX = 64  # connections to one replica, kept for the next requests


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def open_files(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


@pytest.fixture
def allow_files():
    """Raises what this process may open, and with it what it starts, as far as it may: how many that is, and why no
    more."""
    before, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    def allow(wanted):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        why = None
        if soft < wanted:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
            except (OSError, ValueError) as error:
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
                why = f"{wanted} files are to be open at once, {hard} may be: {error}"
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0], why

    yield allow
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@pytest.mark.parametrize("wanted, nodes", [(1000, 4), (10_000, 16)])
def test_idle_streams_are_held_and_none_is_left(start, allow_files, wanted, nodes):
    files_max, why_no_more = allow_files(2 * wanted + BESIDE)  # the server counts two for each stream
    count = min(wanted, (files_max - BESIDE) // 2)
    assert count >= 1000, why_no_more
    server = start(Server, environment={"FLOTILLA_SYNTHETIC_STEP_US": "3000000", "QUEUE_MAX": str(count)})
    server.put_cluster(nodes)
    status, answer = server.admin("POST", "/clusters/local/load",
                                  {"model": "synthetic", "batch": True, "batch_size": PLACES})
    assert status == 200, answer
    pool = lambda: server.pool("synthetic")  # noqa: E731
    memory, files = resident_kib(server.pid), open_files(server.pid)
    body = json.dumps({"model": "synthetic", "stream": True, "max_tokens": 2000, "ignore_eos": True,
                       "messages": [{"role": "user", "content": "Go."}]}).encode()
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    streams = []
    for number in range(count):
        # One address may not have half of all connections.
        here = (f"127.0.0.{2 + number % 8}", 0)
        stream = socket.create_connection(("127.0.0.1", server.port), timeout=60, source_address=here)
        stream.sendall(head + body)
        streams.append(stream)
    wait_until("all are held", lambda: pool()["in_flight"] + pool()["queue_depth"] == count)
    assert pool()["in_flight"] >= nodes * PLACES - nodes  # these are relayed, the rest waits
    # Each has its head and a first block: a token, or the word that it waits.
    for stream in streams:
        assert stream.recv(9) == b"HTTP/1.1 "
    assert pool()["in_flight"] + pool()["queue_depth"] == count
    each = (resident_kib(server.pid) - memory) / count
    print(f"{count} streams, {each:.1f} KiB each")
    assert each <= EACH_MAX_KIB
    for stream in streams:
        stream.close()
    wait_until("all are gone", lambda: pool()["in_flight"] + pool()["queue_depth"] == 0)
    wait_until("their files are closed", lambda: open_files(server.pid) <= files + nodes * RESTING_MAX + 4, 30)
    if why_no_more:
        pytest.skip(f"{count} of {wanted} streams were held: {why_no_more}")
