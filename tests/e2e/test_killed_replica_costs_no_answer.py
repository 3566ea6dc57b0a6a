import os
import signal

import pytest

from support import Stream, wait_until


@pytest.fixture
def server(settled):
    return settled


def kill_one(server):
    pid = server.runners()[0]
    os.kill(pid, signal.SIGKILL)
    return pid


def test_idle_replica_comes_back_by_itself(server):
    killed = kill_one(server)
    (node,) = wait_until("one is out", lambda: [r["node"] for r in server.replicas() if not r["live"]])
    Stream(server.sdk(), "Meanwhile", max_tokens=4).end()
    server.wait_live(2)
    assert killed not in server.runners() and len(server.runners()) == 2
    (replica,) = [replica for replica in server.replicas() if replica["node"] == node]
    assert replica["restarts"] >= 1
    # Dispatch uses it again.
    streams = [Stream(server.sdk(), f"Story {number}", max_tokens=30) for number in range(12)]
    assert node in {stream.end().served["node"] for stream in streams}


def test_every_stream_completes_with_the_text_it_would_have_had(server):
    client = server.sdk()
    prompts = [f"Story number {number} about a ship" for number in range(16)]
    options = {"max_tokens": 80, "extra_body": {"ignore_eos": True}}
    undisturbed = [Stream(client, prompt, seed=seed, **options) for seed, prompt in enumerate(prompts)]
    expected = [stream.end().text for stream in undisturbed]
    exact = server.pool()["exact_resume"]

    streams = [Stream(client, prompt, seed=seed, **options) for seed, prompt in enumerate(prompts)]
    wait_until("most stream", lambda: sum(stream.pieces > 5 for stream in streams) >= 8)
    kill_one(server)
    texts = [stream.end().text for stream in streams]
    assert all(stream.usage.completion_tokens == 80 for stream in streams)
    assert any(stream.served["resumed"] for stream in streams)
    if exact:
        assert texts == expected
    server.wait_live(2)
    server.wait_idle()


def test_requests_that_had_sent_nothing_go_to_another_replica(server):
    client = server.sdk()
    long = [Stream(client, f"Story {number}", max_tokens=40) for number in range(26)]
    wait_until("all places are taken", lambda: server.pool()["queue_depth"] > 0)
    kill_one(server)
    for stream in long:
        stream.end()


def test_both_replicas_killed_one_after_the_other(server):
    client = server.sdk()
    options = {"max_tokens": 120, "extra_body": {"ignore_eos": True}}
    streams = [Stream(client, f"Story {number}", **options) for number in range(6)]
    wait_until("all stream", lambda: all(stream.pieces > 3 for stream in streams))
    survivor = server.runners()[1]
    kill_one(server)
    server.wait_live(2)
    os.kill(survivor, signal.SIGKILL)
    for stream in streams:
        assert stream.end().usage.completion_tokens == 120


def test_all_replicas_dead_requests_wait_for_the_first_that_returns(server):
    for pid in server.runners():
        os.kill(pid, signal.SIGKILL)
    wait_until("none lives", lambda: server.pool()["replicas_live"] == 0)
    Stream(server.sdk(), "Patience", max_tokens=4).end()
