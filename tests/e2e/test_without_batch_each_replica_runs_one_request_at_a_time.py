from support import ALIAS, Server, Stream, wait_until


def load(start, nodes):
    """The made-up model at 10 ms a token."""
    server = start(Server, environment={"FLOTILLA_SYNTHETIC_STEP_US": "10000"})
    server.load(nodes=nodes, model="synthetic", alias=ALIAS, batch=False)
    return server


def test_second_request_waits_for_the_first(start):
    server = load(start, 1)
    client = server.sdk()
    first = Stream(client, "A long story", max_tokens=400, extra_body={"ignore_eos": True})
    first.begun.wait(30)
    second = Stream(client, "Another", max_tokens=4)
    wait_until("the second is queued", lambda: server.pool()["queue_depth"] == 1)
    assert server.replicas()[0]["busy_count"] == 1
    assert first.is_alive() and second.pieces == 0
    first.end()
    second.end()
    assert second.served["queued_ms"] > 0
    assert server.pool()["batch"] is False


def test_two_nodes_run_two(start):
    server = load(start, 2)
    client = server.sdk()
    streams = [Stream(client, f"Story {number}", max_tokens=300, extra_body={"ignore_eos": True})
               for number in range(3)]
    wait_until("one on each node, one waits", lambda:
               [replica["busy_count"] for replica in server.replicas()] == [1, 1]
               and server.pool()["queue_depth"] == 1)
    for stream in streams:
        stream.end()
