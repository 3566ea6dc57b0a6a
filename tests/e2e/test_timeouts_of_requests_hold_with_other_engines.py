"""An engine that is not ours knows no timeout_s. The one here is the test's own and says a word each 0.4 s."""

import socket
import subprocess
import sys

import openai
import pytest

from support import ROOT, Server, Stream, ask, wait_until

SLOW = ROOT / "tests/engines/one_at_a_time.py"


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def server(start):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    engine = subprocess.Popen([sys.executable, SLOW, str(port), "127.0.0.1", "0.4"])
    try:
        wait_until("it listens", lambda: listens(port))
        server = start(Server)
        server.load(nodes=[{"id": "far", "transport": "http", "url": f"http://127.0.0.1:{port}"}], model="any",
                    alias="pool", batch=False)
        yield server
    finally:
        engine.kill()
        engine.wait()


def test_a_request_ends_at_its_own_timeout_wherever_it_is(server):
    for seconds in (0.2, 1.5):  # before the first word, and in the middle
        with pytest.raises(openai.APIStatusError) as late:
            ask(server.sdk(), model="pool", extra_body={"timeout_s": seconds})
        assert late.value.status_code == 504 and "timeout_s" in str(late.value)
    cut = Stream(server.sdk(), "Hello", model="pool", extra_body={"timeout_s": 1.5})
    cut.join(30)
    assert 1 <= cut.pieces < 10 and cut.finish is None
    assert "timeout_s" in str(cut.error)
    replica = server.replicas("pool")[0]
    assert replica["live"] and replica["restarts"] == 0
    assert Stream(server.sdk(), "Hello", model="pool", extra_body={"timeout_s": 60}).end().pieces == 10
