import pytest

from support import ALIAS, MODEL, Server, Stream


@pytest.fixture
def broken(tmp_path):
    def make(name, data):
        file = tmp_path / name
        file.write_bytes(data)
        return file

    head = MODEL.read_bytes()[: 1 << 20]
    return {
        "missing": (tmp_path / "no-such.gguf", "give the path of a model that is there"),
        "no gguf": (make("text.gguf", b"this is a poem, not a model" * 100), "give a model in that format"),
        "cut": (make("cut.gguf", head), "fetch it again"),
        "empty": (make("empty.gguf", b""), "(0 bytes); give a model in that format"),
        "folder": (tmp_path, "name one file"),
        "another file": (make("notes.txt", head), "is not a .gguf file; name one"),
    }


def test_each_load_fails_with_its_reason_and_what_would_do_and_the_server_stays(start, broken):
    server = start(Server)
    server.put_cluster(1)
    for kind, (path, remedy) in broken.items():
        status, answer = server.admin("POST", "/clusters/local/load", {"model": str(path), "batch": True})
        assert status in (422, 502), (kind, answer)
        assert str(path) in answer["detail"] and remedy in answer["detail"], (kind, answer)
        assert server.get_json("/admin/clusters/local/status")["pools"] == [], kind
    server.load()
    Stream(server.sdk(), "Hello", max_tokens=4).end()


def test_other_pools_do_not_notice(shared, broken):
    for path, _ in broken.values():
        status, _ = shared.admin("POST", "/clusters/local/load", {"model": str(path), "alias": "broken"})
        assert status in (422, 502)
    assert [pool["alias"] for pool in shared.get_json("/admin/clusters/local/status")["pools"]] == [ALIAS]
    assert shared.pool()["replicas_live"] == 2
