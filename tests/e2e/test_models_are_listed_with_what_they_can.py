from support import ALIAS, MODEL, Server


def test_a_file_becomes_a_pool(start):
    server = start(Server)
    status, answer = server.admin("PUT", "/clusters/local", {"nodes": [{"id": "one", "threads": 1}],
                                                             "models_dir": str(MODEL.parent)})
    assert status in (200, 201), answer
    assert server.get_json("/v1/models")["data"] == []
    (unloaded,) = [entry for entry in server.get_json("/v1/models?include_unloaded=true")["data"] if entry["id"] == ALIAS]
    assert unloaded["x_flotilla"]["ready"] is False
    assert unloaded["x_flotilla"]["replicas_total"] == 0
    assert unloaded["x_flotilla"]["size_bytes"] == MODEL.stat().st_size

    server.load(model=MODEL.name)
    (loaded,) = server.get_json("/v1/models")["data"]
    assert loaded["id"] == ALIAS
    told = loaded["x_flotilla"]
    assert told["ready"] and told["batch"] and told["replicas_live"] == told["replicas_total"] == 1
    assert told["context_length"] == 2048 or told["context_length"] == 8192
    assert told["quantization"] == unloaded["x_flotilla"]["quantization"]
    assert told["supports_vision"] is False
    assert [entry["id"] for entry in server.get_json("/v1/models?include_unloaded=true")["data"]].count(ALIAS) == 1
    assert server.sdk().models.retrieve(ALIAS).x_flotilla == told
