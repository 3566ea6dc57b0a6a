from support import Server, Stream, wait_until


def test_second_request_waits_for_the_first(start):
    server = start(Server)
    server.load(nodes=1, batch=False)
    client = server.sdk()
    first = Stream(client, "A long story", max_tokens=200, extra_body={"ignore_eos": True})
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
    server = start(Server)
    server.load(nodes=2, batch=False)
    client = server.sdk()
    streams = [Stream(client, f"Story {number}", max_tokens=150, extra_body={"ignore_eos": True})
               for number in range(3)]
    wait_until("one on each node, one waits", lambda:
               [replica["busy_count"] for replica in server.replicas()] == [1, 1]
               and server.pool()["queue_depth"] == 1)
    for stream in streams:
        stream.end()
