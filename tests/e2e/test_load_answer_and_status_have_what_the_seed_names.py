import json
import subprocess

from support import ALIAS, MODEL, Server


def test_plain_curl_loads_with_batch(start):
    server = start(Server)
    server.put_cluster(2, cluster="mesh")
    done = subprocess.run(
        ["curl", "-sS", "-X", "POST", f"{server.url}/admin/clusters/mesh/load", "-H", "Content-Type: application/json",
         "-d", json.dumps({"model": str(MODEL), "batch": True})], text=True, capture_output=True, timeout=120,
        check=True)
    answer = json.loads(done.stdout)
    assert answer["alias"] == ALIAS and answer["cluster"] == "mesh"
    assert answer["is_replica"] is True and answer["batch"] is True
    assert [(replica["live"], replica["busy_count"]) for replica in answer["replicas"]] == [(True, 0)] * 2
    assert answer["load_s"] > 0
    (pool,) = server.get_json("/admin/clusters/mesh/status")["pools"]
    assert pool["is_replica"] is True and pool["batch"] is True and pool["batch_size"] == 8


def test_load_without_waiting_shows_its_bytes(start):
    server = start(Server)
    server.put_cluster(1)
    status, answer = server.admin("POST", "/clusters/local/load", {"model": str(MODEL), "wait": False})
    assert status == 202 and answer["alias"] == ALIAS
    server.wait_live(1)
    (replica,) = server.replicas()
    assert replica["loaded_bytes"] == replica["model_bytes"] > 90_000_000


def test_same_load_again_changes_nothing_and_another_is_refused(shared):
    before = shared.pool()["generation"]
    shared.load()
    assert shared.pool()["generation"] == before
    status, answer = shared.admin("POST", "/clusters/local/load", {"model": str(MODEL), "batch": False})
    assert status == 409
    assert "reload" in answer["detail"]


def test_unknown_fields_are_refused_by_name(shared):
    status, answer = shared.admin("POST", "/clusters/local/load", {"model": str(MODEL), "bach": True})
    assert status == 400 and "bach" in answer["detail"]
    status, answer = shared.admin("PUT", "/clusters/x", {"nodes": [{"id": "a"}], "kind": "pipeline"})
    assert status == 400 and "pipeline" in answer["detail"]
