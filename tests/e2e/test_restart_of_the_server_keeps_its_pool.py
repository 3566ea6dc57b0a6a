import signal

from support import ALIAS, Server, Stream, wait_until


def test_ctrl_c_and_start_again(start, tmp_path):
    server = start(Server, folder=tmp_path / "one")
    server.load(nodes=2, context=1024)
    before = server.pool()
    assert server.stop() == 0
    again = start(Server, folder=tmp_path / "one", port=0)
    wait_until("the pool is known", lambda: again.pool())
    again.wait_live(2)
    after = again.pool()
    for kept in ("alias", "model", "batch", "batch_size", "context_length"):
        assert after[kept] == before[kept]
    Stream(again.sdk(), "Hello", max_tokens=4).end()


def test_server_answers_while_its_pool_comes_back(start, tmp_path):
    server = start(Server, folder=tmp_path / "one")
    server.load(nodes=1)
    server.stop()
    again = start(Server, folder=tmp_path / "one")
    # Declared, though not ready: the request waits instead of being refused.
    Stream(again.sdk(), "Hello", max_tokens=4).end()


def test_killed_server_leaves_its_state_whole(start, tmp_path):
    server = start(Server, folder=tmp_path / "one")
    server.load(nodes=1, model="synthetic", alias=ALIAS)
    server.signal(signal.SIGKILL)
    server.wait()
    again = start(Server, folder=tmp_path / "one")
    again.wait_live(1)
    Stream(again.sdk(), "Hello", max_tokens=4).end()


def test_unloaded_pool_does_not_return(start, tmp_path):
    server = start(Server, folder=tmp_path / "one")
    server.load(nodes=1, model="synthetic", alias=ALIAS)
    status, answer = server.admin("POST", "/clusters/local/unload", {"alias": ALIAS})
    assert status == 200, answer
    wait_until("no runner is left", lambda: not server.runners())
    server.stop()
    again = start(Server, folder=tmp_path / "one")
    wait_until("the cluster is known", lambda: again.call("GET", "/admin/clusters/local/status")[0] == 200)
    assert again.get_json("/admin/clusters/local/status")["pools"] == []
    assert again.get_json("/health")["status"] == "idle"
