"""Loads that overlap, that take another's name, that fit nowhere; ids that are none."""

import threading

import pytest

from support import ALIAS, MODEL, Server, wait_until


def load(server, cluster="local", **body):
    return server.admin("POST", f"/clusters/{cluster}/load", {"model": "synthetic", "batch": True} | body)


def test_an_alias_in_use_is_named_with_who_has_it(start):
    server = start(Server)
    server.put_cluster(1)
    server.put_cluster([{"id": "other-1"}], cluster="other")
    assert load(server, alias="story")[0] == 200
    for body in ({"alias": "story"}, {"alias": "tale", "aliases": ["story"]}):
        status, answer = load(server, "other", **body)
        assert status == 409, answer
        for word in ('"story"', "local", "another alias"):
            assert word in answer["detail"], answer
    assert server.get_json("/admin/clusters/other/status")["pools"] == []
    assert load(server, "other", alias="tale")[0] == 200


def test_of_loads_that_overlap_one_is_done(start):
    server = start(Server)
    server.put_cluster(1)
    server.put_cluster([{"id": "other-1"}], cluster="other")
    answers = {}

    def ask(number, cluster):
        answers[number] = load(server, cluster, alias="story", context=1024 * number)

    # To two clusters: the name is one server's.
    threads = [threading.Thread(target=ask, args=(number, cluster), daemon=True)
               for number, cluster in enumerate(["local", "other"] * 3, start=1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(status for status, _ in answers.values()) == [200] + [409] * 5, answers
    assert all("story" in answer["detail"] for status, answer in answers.values() if status == 409), answers
    assert len(server.runners()) == 1


@pytest.mark.parametrize("path", ["/clusters/a%20b", "/clusters/-x", "/clusters/" + "x" * 200])
def test_ids_that_are_none_are_refused(shared, path):
    status, answer = shared.admin("PUT", path, {"nodes": [{"id": "local-9"}]})
    assert status == 400 and answer["detail"], answer
    status, answer = shared.admin("PUT", "/clusters/fine", {"nodes": [{"id": path.removeprefix("/clusters/")}]})
    assert status == 400 and answer["detail"], answer


@pytest.mark.parametrize("method, path, body", [
    ("GET", "/clusters/none/status", None), ("POST", "/clusters/none/load", {"model": str(MODEL)}),
    ("POST", "/clusters/none/unload", {}), ("DELETE", "/clusters/none", None)])
def test_a_cluster_that_is_not_there_is_named(shared, method, path, body):
    status, answer = shared.admin(method, path, body)
    assert status == 404 and "none" in answer["detail"], answer


def test_a_load_that_fits_nowhere_tells_each_nodes_numbers(start):
    server = start(Server)
    server.put_cluster(2)
    status, answer = server.admin("POST", "/clusters/local/load",
                                  {"model": str(MODEL), "batch": True, "context": 8192, "batch_size": 64,
                                   "window": 500_000_000})
    assert status == 422, answer
    assert not server.runners()
    for node in ("local-1", "local-2"):
        assert node in answer["detail"], answer
    assert "GiB" in answer["detail"] or "GB" in answer["detail"], answer
    wait_until("nothing is left of it", lambda: server.pool(ALIAS) is None)
