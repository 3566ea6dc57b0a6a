import threading

import pytest

from support import ALIAS, MODEL, Server, Stream, wait_until


@pytest.fixture
def server(settled):
    return settled


class Load:
    """Streams one after the other on some threads, until it is left; each must be whole."""

    def __init__(self, server, threads=6, **options):
        self.client, self.options = server.sdk(), {"max_tokens": 24} | options
        self.streams, self.ended = [], threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]

    def run(self):
        while not self.ended.is_set():
            stream = Stream(self.client, f"Story {len(self.streams)}", **self.options)
            self.streams.append(stream)
            stream.join(120)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until("streams end", lambda: sum(stream.finish is not None for stream in self.streams) > 6)
        return self

    def __exit__(self, kind, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join(120)
        if kind is None:
            assert len(self.streams) > 6
            for stream in self.streams:
                stream.end()


def order(server, node, action, alias=ALIAS):
    return server.admin("POST", f"/clusters/local/pools/{alias}/replicas/{node}/{action}", {})


def test_reload_brings_new_runners_under_load(server):
    before, generation = server.runners(), server.pool()["generation"]
    long = Stream(server.sdk(), "A long story", max_tokens=300, extra_body={"ignore_eos": True})
    long.begun.wait(30)
    with Load(server):
        status, answer = server.admin("POST", "/clusters/local/reload", {"alias": ALIAS})
        assert status == 200, answer
    assert long.end().usage.completion_tokens == 300
    assert answer["generation"] > generation and len(answer["replicas"]) == 2
    assert all(replica["live"] for replica in answer["replicas"])
    assert not set(before) & set(server.runners()) and len(server.runners()) == 2


def test_reload_changes_batch_and_model_and_survives_a_restart(start):
    server = start(Server)
    server.load(nodes=1)
    other = MODEL.parent / "renamed.gguf"
    if not other.exists():
        other.symlink_to(MODEL)
    answer = server.command("reload", "local", ALIAS, "--model", other, "--no-batch")
    assert answer.returncode == 0, answer.stderr
    assert "1 of 1 replicas ready" in answer.stdout
    pool = server.pool()
    assert pool["model"] == str(other) and pool["batch"] is False and pool["replicas_total"] == 1
    Stream(server.sdk(), "Hello", max_tokens=4).end()
    server.stop()
    again = start(Server, folder=server.state.parent)
    again.wait_live(1)
    assert again.pool()["model"] == str(other) and again.pool()["generation"] == pool["generation"]


def test_reload_that_cannot_come_up_leaves_all_as_it_was(server, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(MODEL.read_bytes()[:3_000_000])
    before, pool = server.runners(), server.pool()
    with Load(server, threads=2):
        status, answer = server.admin("POST", "/clusters/local/reload", {"model": str(broken)})
    assert status in (422, 502), answer
    assert server.runners() == before
    assert server.pool()["model"] == pool["model"] and server.pool()["replicas_total"] == 2
    assert server.admin("POST", "/clusters/local/reload", {"model": "/nowhere.gguf"})[0] == 422
    assert server.admin("POST", "/clusters/local/reload", {"modell": "x"})[0] == 400
    assert server.admin("POST", "/clusters/local/reload", {"alias": "other"})[0] == 404


def test_restart_of_one_replica_under_load(server):
    before = server.runners()
    with Load(server):
        answer = server.command("replica", "restart", "local", ALIAS, "local-1")
        assert answer.returncode == 0, answer.stderr
    assert "local-1: ready" in answer.stdout
    after = server.runners()
    assert len(after) == 2 and len(set(before) & set(after)) == 1


def test_drained_replica_gets_nothing_until_it_is_resumed(server):
    status, answer = order(server, "local-1", "drain")
    assert status == 200 and answer["replica"]["state"] == "draining", answer
    streams = [Stream(server.sdk(), f"Story {number}", max_tokens=8) for number in range(8)]
    assert {stream.end().served["node"] for stream in streams} == {"local-2"}
    assert len(server.runners()) == 2
    status, answer = order(server, "local-1", "resume")
    assert status == 200 and answer["replica"]["state"] == "ready", answer
    streams = [Stream(server.sdk(), f"Story {number}", max_tokens=8) for number in range(8)]
    assert {stream.end().served["node"] for stream in streams} == {"local-1", "local-2"}


def test_unknown_nodes_and_actions_are_named(server):
    status, answer = order(server, "local-9", "drain")
    assert status == 404 and "local-9" in answer["detail"] and "local-1" in answer["detail"]
    status, answer = order(server, "local-1", "explode")
    assert status == 404 and "explode" in answer["detail"]
    assert order(server, "local-1", "drain", alias="other")[0] == 404


def test_second_action_is_told_what_is_under_way(server):
    long = Stream(server.sdk(), "A long story", max_tokens=600, extra_body={"ignore_eos": True})
    long.begun.wait(30)
    answers = []
    first = threading.Thread(target=lambda: answers.append(
        server.admin("POST", "/clusters/local/reload", {"alias": ALIAS})))
    first.start()
    wait_until("it is under way", lambda: server.pool()["replicas_total"] > 2)
    for path, body in (("/clusters/local/reload", {"alias": ALIAS}), ("/clusters/local/unload", {"alias": ALIAS}),
                       (f"/clusters/local/pools/{ALIAS}/replicas/local-1/restart", {})):
        status, answer = server.admin("POST", path, body)
        assert status == 409 and "reloaded" in answer["detail"], (path, answer)
    status, answer = server.admin("PUT", "/clusters/local", {"nodes": [{"id": "local-1"}]})
    assert status == 409 and "reloaded" in answer["detail"], answer
    first.join(120)
    assert answers[0][0] == 200, answers
    long.end()


def test_cluster_edit_adds_and_drains_nodes(start):
    server = start(Server)
    server.load(nodes=2)
    with Load(server):
        added = {"id": "local-3", "threads": 1}
        server.put_cluster([{"id": "local-2", "threads": 1}, added])
        wait_until("the edit is done", lambda: sorted(
            replica["node"] for replica in server.replicas() if replica["state"] == "ready") ==
            ["local-2", "local-3"] and len(server.runners()) == 2)
        before = server.runners()
        server.put_cluster([{"id": "local-2", "threads": 2}, added])
        wait_until("local-2 is anew", lambda: len(set(server.runners()) - set(before)) == 1 and
                   all(replica["live"] for replica in server.replicas()))


def test_unloading_one_of_two_pools_touches_not_the_other(server):
    server.load(alias="second", batch=False)
    assert len(server.runners()) == 4
    status, answer = server.admin("POST", "/clusters/local/unload", {})
    assert status == 400 and "several pools" in answer["detail"]
    others = set(server.runners())
    with Load(server, threads=2):
        status, answer = server.admin("POST", "/clusters/local/unload", {"alias": "second"})
        assert status == 200, answer
    assert len(server.runners()) == 2 and set(server.runners()) < others
    assert server.pool("second") is None
    status, answer = server.admin("DELETE", "/clusters/local")
    assert status == 409 and ALIAS in answer["detail"]
