import signal
import time

import pytest

from support import ALIAS, MODEL, Server, Stream, is_runner, wait_until


def begin(start, tmp_path, model="synthetic"):
    server = start(Server, folder=tmp_path / "one")
    server.load(nodes=2, model=str(model), alias=ALIAS)
    return server


@pytest.fixture
def server(start, tmp_path):
    return begin(start, tmp_path)


def begin_again(start, tmp_path):
    """The next server of that state, and seconds from its start until it answers HTTP and a chat."""
    began = time.monotonic()
    again = start(Server, folder=tmp_path / "one")
    wait_until("it answers", lambda: again.call("GET", "/livez")[0] == 200)
    up = time.monotonic() - began
    Stream(again.sdk(), "Hello", max_tokens=4).end()
    return again, up, time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_next_server_takes_them_over_without_a_load(start, tmp_path, number):
    server = begin(start, tmp_path, MODEL)
    runners = server.runners()
    assert len(runners) == 2
    server.signal(number)
    server.wait()
    again, up, serving = begin_again(start, tmp_path)
    assert up < 1 and serving < 2, (up, serving)
    again.wait_live(2, 5)
    assert again.runners() == runners
    assert "took over the replica" in again.log()
    assert all(replica["restarts"] == 0 for replica in again.replicas())


def test_they_are_this_servers_own_again(server, start, tmp_path):
    server.signal(signal.SIGKILL)
    server.wait()
    again, _, _ = begin_again(start, tmp_path)
    again.wait_live(2)
    status, answer = again.admin("POST", "/clusters/local/unload", {})
    assert status == 200, answer
    assert not again.runners()


def test_a_load_that_was_under_way_goes_on(start, tmp_path):
    server = start(Server, folder=tmp_path / "one")
    server.put_cluster(1)
    server.admin("POST", "/clusters/local/load", {"model": "synthetic", "batch": True, "wait": False})
    wait_until("a runner is there", server.runners)
    server.signal(signal.SIGKILL)
    server.wait()
    again = start(Server, folder=tmp_path / "one")
    wait_until("it is live", lambda: any(replica["live"] for replica in again.replicas("synthetic")))
    Stream(again.sdk(), "Hello", model="synthetic", max_tokens=4).end()


def test_other_settings_are_no_ground_to_take_over(server, start, tmp_path):
    runners = server.runners()
    server.signal(signal.SIGKILL)
    server.wait()
    again = start(Server, folder=tmp_path / "one", environment={"RUNNER_BATCH_SIZE": "3"})
    again.wait_live(2)
    assert not set(runners) & set(again.runners())
    assert again.pool()["batch_size"] == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_without_a_next_server_they_end_with_the_grace(start, number):
    server = start(Server, environment={"AGENT_GRACE_S": "1"})
    server.load(nodes=2, model="synthetic")
    runners = server.runners()
    server.signal(number)
    server.wait()
    assert all(map(is_runner, runners))
    wait_until("no runner is left", lambda: not any(map(is_runner, runners)), 10)


def test_ctrl_c_ends_them(server):
    runners = server.runners()
    assert server.stop() == 0
    assert not any(map(is_runner, runners))
