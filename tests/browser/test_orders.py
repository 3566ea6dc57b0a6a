"""What an operator tells one replica or a cluster, with what it will do said first."""

import pytest
from selenium.webdriver.common.by import By
from stand_in import cluster, node, pool, replica
from support import ALIAS

PATH = f"/admin/clusters/local/pools/{ALIAS}/replicas/local-1"
SPEC = {
    "id": "local",
    "label": "This machine",
    "kind": "replica",
    "models_dir": "/models",
    "reload_on_restart": True,
    "nodes": [
        {
            "id": "local-1",
            "label": "local-1",
            "transport": "local",
            "env": {"OMP_NUM_THREADS": "2"},
        },
        {"id": "far", "label": "far", "transport": "http", "url": "http://far:8080/v1"},
    ],
}


def manage(page, stand_in, **changes):
    stand_in.show(cluster(pools=[pool(replicas=[replica(0, **changes), replica(1)])]))
    page.open(stand_in.url)
    page.press("Manage local-1")


@pytest.mark.parametrize("action", ["restart", "drain", "resume"])
def test_replica_is_told_what_to_do_after_its_effect_was_said(page, stand_in, action):
    manage(page, stand_in, busy_count=3, log_tail="loaded\nready")
    page.wait_text("dialog", "Its 3 running requests go on in another replica.")
    assert "3 running requests may finish" in page.text("dialog")
    assert page.text(".last-words") == "loaded ready"
    assert page.complaints_of_axe() == []
    page.field(action.capitalize()).click()
    page.press(action.capitalize(), "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.orders[-1] == ("POST", f"{PATH}/{action}", {})


def test_drained_replica_is_offered_to_resume_and_a_refusal_stays(page, stand_in):
    manage(page, stand_in, state="draining")
    page.wait_text("dialog", "drained")
    assert page.pills(ALIAS) == "replica, 1 drained · batch"
    stand_in.answers[("POST", f"{PATH}/resume")] = (409, {"detail": "it is being restarted"}, 0)
    page.press("Resume", "dialog")
    page.wait_text(".refusal", "it is being restarted")
    page.press("Its log", "dialog")
    page.wait("the log page", lambda: page.find_all("main[data-page=logs]"))
    assert page.field("Replica", ".log-panel").get_attribute("value") == f"{ALIAS} on local-1"


def test_model_is_reloaded_after_saying_what_that_does(page, stand_in):
    stand_in.show(cluster(pools=[pool(replicas=[replica(0, busy_count=3), replica(1)])]))
    page.open(stand_in.url)
    page.press(f"Reload {ALIAS}")
    page.wait_text("dialog", "New replicas come up beside the old ones where memory allows")
    assert "3 running requests may finish first; none fails." in page.text("dialog")
    assert page.complaints_of_axe() == []
    page.screenshots("dialog-reload")
    model = page.field("Model")
    page.fill(model, " ")
    page.press("Reload", "dialog")
    page.wait_text("dialog", "The path of a .gguf file or a model folder.")
    assert stand_in.orders == []
    page.fill(model, "/models/next.gguf")
    page.field("Batch").click()
    path = ("POST", "/admin/clusters/local/reload")
    stand_in.answers[path] = (422, {"detail": "local-2 has no '/models/next.gguf'"}, 0)
    page.press("Reload", "dialog")
    page.wait_text(".notice", "local-2 has no '/models/next.gguf'")
    asked = {"alias": ALIAS, "model": "/models/next.gguf", "batch": False}
    assert stand_in.orders == [(*path, asked)]


def test_cluster_is_edited_without_losing_what_the_page_does_not_show(page, stand_in):
    far = replica(1, node="far", busy_count=2)
    nodes = [node("local-1"), node("far", transport="http")]
    stand_in.show(cluster(nodes=nodes, pools=[pool(replicas=[replica(0), far])]))
    stand_in.answers[("GET", "/admin/clusters/local")] = (200, SPEC, 0)
    page.open(stand_in.url)
    page.press("Edit This machine")
    page.wait("its nodes", lambda: len(page.find_all(".node-fields")) == 2)
    page.press("Add a node")
    third = '.node-fields[data-node="local-3"]'
    page.wait("a third", lambda: page.find_all(third))
    page.find(f"{third} select").find_elements(By.TAG_NAME, "option")[2].click()
    page.press("Save", "dialog")
    page.wait_text(third, "A whole address")
    assert not [r for r in stand_in.requests if r[0] == "PUT"]
    assert page.complaints_of_axe() == []
    page.screenshots("edit-cluster")
    page.field("Address", third).send_keys("http://mini:8080/v1")
    page.press("Take out far")
    page.wait_text("dialog", "far leaves: 2 running requests may finish first")
    page.press("Save", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    method, path, body = stand_in.orders[-1]
    assert (method, path) == ("PUT", "/admin/clusters/local")
    new = {"id": "local-3", "transport": "http", "url": "http://mini:8080/v1"}
    assert body == SPEC | {"nodes": [SPEC["nodes"][0], new]}


def test_cluster_without_a_node_is_told_at_its_list_and_not_sent(page, stand_in):
    stand_in.show(cluster(nodes=[node("local-1")]))
    stand_in.answers[("GET", "/admin/clusters/local")] = (200, SPEC | {"nodes": SPEC["nodes"][:1]}, 0)
    page.open(stand_in.url)
    page.press("Edit This machine")
    page.press("Take out local-1")
    page.wait_text("dialog [role=alert]", "A cluster has at least one node.")
    page.press("Save", "dialog")
    assert page.complaints_of_axe() == [] and stand_in.orders == []


def test_a_cluster_with_a_model_is_offered_no_removal(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    stand_in.answers[("GET", "/admin/clusters/local")] = (200, SPEC, 0)
    page.open(stand_in.url)
    page.press("Edit This machine")
    page.press("Remove this cluster…")
    page.wait_text("dialog", "Unload first.")
    assert [b.accessible_name for b in page.find_all("dialog button")] == ["Close"]
    assert page.complaints_of_axe() == []
    stand_in.show(cluster())
    page.wait_text("dialog", "Nothing is loaded on it.")
    page.press("Remove", "dialog")
    page.wait("the order", lambda: stand_in.orders)
    assert stand_in.orders[0][:2] == ("DELETE", "/admin/clusters/local")


def test_cluster_is_edited_and_removed_on_the_real_server(page, server):
    server.put_cluster(2)
    page.open(server.url)
    page.press("Edit local")
    page.press("Take out local-2")
    label = page.field("Label")
    page.fill(label, "My desk")
    page.press("Save", "dialog")
    page.wait_text("h2#cluster-local", "My desk")
    page.wait("one node", lambda: len(page.find_all(".cluster .nodes .pill")) == 1)
    page.press("Edit My desk")
    page.press("Remove this cluster…")
    page.wait_text("dialog", "Nothing is loaded on it.")
    assert page.complaints_of_axe() == []
    page.press("Remove", "dialog")
    page.wait("no cluster", lambda: page.find_all(".harbour"))
    assert server.get_json("/admin/clusters") in ([], {"clusters": []})
