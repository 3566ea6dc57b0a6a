"""Before a load: what the nodes have, and whether it fits."""

import json

import pytest
from selenium.webdriver.common.keys import Keys
from stand_in import cluster
from support import ALIAS, MODEL

MODELS = ("GET", "/admin/clusters/local/models")
PREFLIGHT = ("GET", "/admin/clusters/local/preflight")
GIB = 1 << 30


def model(path, **changes):
    return {
        "model": path,
        "size_bytes": 4_680_000_000,
        "parts": 1,
        "folder": False,
        "family": "llama",
        "quantization": "Q4_K_M",
        "context_trained": 131072,
        "nodes": ["local-1", "local-2"],
        "missing": [],
        "differing": [],
    } | changes


def line(node, need, free, **changes):
    return {
        "node": node,
        "model_present": True,
        "context": 8192,
        "weights_bytes": need - GIB,
        "kv_bytes": GIB // 2,
        "buffer_bytes": GIB // 2,
        "need_bytes": need,
        "free_bytes": free,
        "replicas_here": 1,
        "fits": need <= free,
        "verdict": "fits" if need <= free else "does not fit: needs 6.00 GiB, free 4.00 GiB",
    } | changes


def inventory(*models, error=""):
    nodes = [{"node": f"local-{i}", "models_dir": "/models", "error": error} for i in (1, 2)]
    return (200, {"cluster": "local", "models": list(models), "nodes": nodes}, 0)


def verdict(fits, limiting, *nodes):
    answer = {"fits": fits, "width": 8, "limiting_node": limiting, "nodes": list(nodes)}
    return (200, answer, 0)


def open_dialog(page, server):
    page.open(server.url)
    page.press("Load a model", ".cluster-head")
    page.wait("the dialog", lambda: page.find_all("dialog"))


def test_what_several_nodes_advise_is_shown_once(page, stand_in):
    stand_in.show(cluster())
    stand_in.answers[MODELS] = inventory(model("odyssai/Own-Module", folder=True, family="qwen3_next", parts=9))
    advice = "it has a module of its own, model.py"
    nodes = [line(f"local-{i}", 6 * GIB, 9 * GIB, advice=advice) for i in (1, 2)]
    stand_in.answers[PREFLIGHT] = verdict(True, "local-1", *nodes)
    open_dialog(page, stand_in)
    page.wait_text(".model-choices", "qwen3_next")
    page.click(".model-choice:first-child input")
    page.wait_text(".preflight .wrong", advice)
    assert len(page.find_all(".preflight .wrong")) == 1


def test_models_of_the_nodes_are_offered_and_the_preflight_names_the_limiting_node(page, stand_in):
    stand_in.show(cluster())
    stand_in.answers[MODELS] = inventory(
        model("Llama-3.1-8B.gguf"),
        model("Qwen2.5-1.5B.gguf", quantization="Q8_0", family="qwen2", missing=["local-2"]),
        model("broken.gguf", error="not a GGUF file"),
        model("odyssai/Qwen3.8-Flash-Next-Q6", folder=True, family="qwen3_next", parts=9),
    )
    nodes = [line("local-1", 6 * GIB, 9 * GIB), line("local-2", 6 * GIB, 4 * GIB)]
    stand_in.answers[PREFLIGHT] = verdict(False, "local-2", *nodes)
    open_dialog(page, stand_in)
    page.wait_text(".model-choices", "llama · Q4_K_M · 4.7 GB · on both nodes")
    assert "missing on local-2" in page.text(".model-choice:nth-child(2)")
    assert "not a GGUF file" in page.text(".model-choice:nth-child(3)")
    assert "qwen3_next · Q4_K_M · folder" in page.text(".model-choice:nth-child(4)")
    page.click(".model-choice:first-child input")
    page.wait_text(".preflight", "local-2 decides: does not fit: needs 6.00 GiB")
    assert page.text('[data-node="local-1"]').endswith("fits")
    assert page.complaints_of_axe() == []
    page.screenshots("load-dialog")
    page.size(390, 860)
    edge = page.driver.execute_script("return document.querySelector('dialog form').clientWidth")
    for shown in page.find_all(".preflight tbody .matters"):
        assert shown.location["x"] + shown.size["width"] <= edge
    assert not page.driver.execute_script(
        "const b = document.querySelector('.preflight .table-box'); return b.scrollWidth > b.clientWidth"
    )
    page.size(1360, 860)
    stand_in.answers[PREFLIGHT] = (*verdict(True, "local-1", nodes[0])[:2], 0.5)
    page.field("Context").send_keys("2048")
    page.wait_text(".preflight[aria-busy=true]", "this is the old answer")
    page.wait_text(".preflight[aria-busy=false]", "Tightest on local-1")
    asked = [path for _, path, _ in stand_in.requests if "preflight" in path]
    assert asked[-1].endswith("?model=Llama-3.1-8B.gguf&batch=true&context=2048")
    page.press("Load", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.orders[-1][2]["model"] == "Llama-3.1-8B.gguf"


def test_a_server_without_the_routes_leaves_the_path_to_be_typed(page, stand_in):
    stand_in.show(cluster())
    open_dialog(page, stand_in)
    page.field("Model").send_keys("/models/a.gguf")
    page.wait("the preflight to be asked", lambda: "preflight" in str(stand_in.requests))
    assert not page.find_all(".model-choices, .preflight, dialog .wrong")


def test_batch_is_offered_where_the_cluster_is_of_replicas(page, stand_in):
    stand_in.show(cluster(), cluster("split", "Split") | {"kind": "pipeline"})
    open_dialog(page, stand_in)
    box = page.field("Batch")
    assert box.is_selected() and "Continuous batching in replica mode" in box.accessible_name
    page.press("Cancel", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    page.press("Load a model", '[data-cluster="split"] .cluster-head')
    page.field("Model").send_keys("/models/a.gguf")
    assert not page.find_all("dialog input[type=checkbox]")
    page.press("Load", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    asked = {"model": "/models/a.gguf", "batch": False, "wait": True}
    assert stand_in.orders == [("POST", "/admin/clusters/split/load", asked)]


def test_a_refusal_goes_when_what_was_refused_is_changed(page, stand_in):
    stand_in.show(cluster())
    refused = (422, {"detail": "none.gguf: No such file"}, 0)
    stand_in.answers[("POST", "/admin/clusters/local/load")] = refused
    stand_in.answers[PREFLIGHT] = (503, {"detail": "no node answers"}, 0)
    open_dialog(page, stand_in)
    page.field("Model").send_keys("none.gguf")
    page.wait_text("dialog .refusal", "Not checked: no node answers")
    page.press("Load", "dialog")
    page.wait_text("dialog", "none.gguf: No such file")
    stand_in.answers[PREFLIGHT] = (*verdict(True, "local-1", line("local-1", 6 * GIB, 9 * GIB))[:2], 1)
    page.field("Context").send_keys("2048")
    page.wait("no refusal", lambda: not page.find_all("dialog .refusal"))
    assert not page.find_all(".preflight"), "before the nodes have answered again"
    page.wait_text(".preflight", "Tightest on local-1")


WHOLE = "A whole number of tokens, or empty."


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0", WHOLE),
        ("-1", WHOLE),
        ("many", WHOLE),
        ("1.5", WHOLE),
        ("16777217", "At most 16,777,216 tokens."),
        ("99999999", "At most 16,777,216 tokens."),
    ],
)
def test_wrong_context_is_shown_at_the_field_and_nothing_is_asked(page, stand_in, value, words):
    stand_in.show(cluster())
    open_dialog(page, stand_in)
    page.field("Context").send_keys(value)
    page.field("Model").send_keys("/models/a.gguf")
    assert page.field("Context").get_attribute("aria-invalid") == "true"
    page.press("Load", "dialog")
    page.wait_text("dialog", words)
    assert not [r for r in stand_in.requests if "preflight" in r[1] or r[0] == "POST"]


def test_load_from_the_list_with_its_preflight_on_the_real_server(page, server):
    nodes = [{"id": f"local-{number}"} for number in (1, 2)]
    body = {"nodes": nodes, "models_dir": str(MODEL.parent)}
    assert server.admin("PUT", "/clusters/local", body)[0] == 201
    open_dialog(page, server)
    page.wait_text(".model-choices", MODEL.name)
    assert "Q4_1" in page.text(".model-choices") and "on both nodes" in page.text(".model-choices")
    page.click(".model-choice input")
    page.wait_text('[data-node="local-2"]', "fits")
    button = page.button("Load", "dialog")
    assert page.find(".preflight").location["y"] < button.location["y"]
    page.field("Context").send_keys("16777216")
    page.wait_text(".preflight", "decides", timeout=20)
    assert "put the model on" not in page.text(".preflight")
    page.field("Context").send_keys(Keys.BACKSPACE * 8)
    page.wait_text('[data-node="local-2"]', "fits")
    page.screenshots("load-dialog-real")
    page.press("Load", "dialog")
    page.wait_pills(ALIAS, "replica · batch", timeout=60)


def test_preflight_route_names_what_is_wrong_with_a_question(server):
    server.put_cluster(1)
    path = "/admin/clusters/local/preflight"
    for query, status, words in [
        ("", 400, "model"),
        ("?model=a.gguf&batch=yes", 400, "yes"),
        ("?model=a.gguf&context=-4", 400, "-4"),
    ]:
        got, _, text = server.call("GET", path + query)
        assert got == status and words in json.loads(text)["detail"], text
    status, _, text = server.call("GET", "/admin/clusters/none/preflight?model=a.gguf")
    assert status == 404 and "none" in text
    answer = server.get_json(path + "?model=/none/a.gguf")
    assert answer["fits"] is False and answer["nodes"][0]["model_present"] is False
