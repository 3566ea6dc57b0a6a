"""The pages of model files and of machines."""

import re
import shutil

import answers
from stand_in import busy_fleet
from support import MODEL


def open_page(page, stand_in, name):
    answers.everything(stand_in)
    stand_in.show(*busy_fleet())
    page.open(f"{stand_in.url}/#/{name}")
    page.wait(f"the page {name}", lambda: page.find(f"main[data-page={name}]").text)


def test_a_model_goes_to_the_nodes_that_are_chosen(page, stand_in):
    open_page(page, stand_in, "models")
    row = '[data-model="Qwen2.5-1.5B.Q8_0.gguf"]'
    page.wait_text(row, "mini-c lacks it")
    assert "mini-d another file" in page.text(row) and "mini-b not asked" in page.text(row)
    assert "Copy" not in page.text('[data-model="Meta-Llama-3.1-8B.Q4_0.gguf"]').split()
    folder = page.text('[data-model="odyssai/Qwen3.8-Flash-Next-Q6"]')
    assert "folder of weights, for an engine that is not ours qwen3_next · 6bit" in folder
    assert "Copy" not in folder.split()
    page.press("Copy Qwen2.5-1.5B.Q8_0.gguf")
    assert page.field("mini-c").is_selected() and not page.field("mini-d").is_selected()
    page.field("mini-c").click()
    page.press("Copy to 0 nodes")
    page.wait_text("dialog fieldset", "Choose at least one node.")
    page.wait("the first of them", lambda: page.focused().startswith("mini-c"))
    assert stand_in.orders == []
    page.field("mini-c").click()
    page.field("mini-d").click()
    assert page.complaints_of_axe() == []
    page.screenshots("dialog-copy")
    page.press("Copy to 2 nodes")
    order = {"cluster": "minis", "model": "Qwen2.5-1.5B.Q8_0.gguf", "nodes": ["mini-c", "mini-d"]}
    sent = ("POST", "/admin/models/sync", order)
    page.wait("it was sent", lambda: sent in stand_in.requests)


def test_a_copy_shows_how_far_it_is_and_is_cancelled(page, stand_in):
    stand_in.transfers = [answers.transfer()]
    open_page(page, stand_in, "models")
    page.wait_text('[data-transfer="t1"]', "720 MB of 1.9 GB 61.0 MB/s copying, 20 s to go")
    asked = len([r for r in stand_in.requests if r[1] == "/admin/models"])
    page.press("Cancel the copy of Qwen2.5-1.5B.Q8_0.gguf")
    page.wait_text("dialog", "the next copy goes on from there")
    assert stand_in.orders == [] and page.complaints_of_axe() == []
    page.press("Cancel the copy", "dialog")
    cancelled = ("DELETE", "/admin/transfers/t1", {})
    page.wait("it was sent", lambda: cancelled in stand_in.requests)
    stand_in.transfers = [answers.transfer("failed", state="failed", error="its disk is full")]
    stand_in.show(*busy_fleet())
    page.wait_text('[data-transfer="t1"]', "its disk is full")
    page.wait(
        "the files were looked at again",
        lambda: len([r for r in stand_in.requests if r[1] == "/admin/models"]) > asked,
    )


def test_hashes_are_compared(page, stand_in):
    open_page(page, stand_in, "models")
    page.press("Compare Qwen2.5-1.5B.Q8_0.gguf")
    page.wait_text("dialog", "9f86d081884c")
    assert "its file is of the same size but another" in page.text('dialog [data-node="mini-d"]')
    assert page.complaints_of_axe() == []


def test_a_host_key_is_stored_only_after_a_look_at_it(page, stand_in):
    open_page(page, stand_in, "nodes")
    page.press("Host key of mini-a")
    page.wait_text("dialog", "SHA256:47DEQpj8HBSaTImWhhE8OtCY0J3g1kZm9q3sVdQ7Rk0 (ED25519)")
    assert "has another one" in page.text("dialog")
    asked = [r for r in stand_in.requests if r[1].endswith("/trust")]
    assert asked == [("POST", "/admin/nodes/mini-a/trust", {})]
    assert page.complaints_of_axe() == []
    page.screenshots("dialog-trust")
    page.press("Store it")
    key = {"fingerprint": "SHA256:47DEQpj8HBSaTImWhhE8OtCY0J3g1kZm9q3sVdQ7Rk0"}
    stored = ("POST", "/admin/nodes/mini-a/trust", key)
    page.wait("it was sent", lambda: stored in stand_in.requests)


def test_flotilla_is_installed_after_saying_what_that_does(page, stand_in):
    open_page(page, stand_in, "nodes")
    page.press("Install Flotilla on mini-a")
    page.wait_text("dialog", "Its 1 replica drains first")
    assert "running request" in page.text("dialog") and page.complaints_of_axe() == []
    page.press("Install")
    page.wait_text("dialog", "(macos-arm64) is at /opt/homebrew/bin/flotilla.")
    page.press("Close")
    page.wait("it is closed", lambda: not page.find_all("dialog"))


def test_nodes_show_their_devices_and_what_the_doctor_found(page, stand_in):
    open_page(page, stand_in, "nodes")
    page.wait_text('[data-node="mini-a"]', "6.8 GB of 17.2 GB · 61 % busy · 58 °C")
    assert "13.0 GB of 34.0 GB · 312 MB in runners" in page.text('[data-node="mini-a"]')
    page.press("Check everything")
    page.wait_text("[data-doctor]", "Something is wrong")
    first = page.find("[data-level]")
    assert first.get_attribute("data-level") == "failure" and "look at the machine" in first.text


def test_real_server_copies_a_model_between_two_folders(page, server, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    shutil.copy(MODEL, tmp_path / "one" / MODEL.name)
    nodes = [{"id": f"n-{name}", "models_dir": str(tmp_path / name)} for name in ("one", "two")]
    server.put_cluster(nodes)
    page.open(f"{server.url}/#/models")
    page.wait_text(f'[data-model="{MODEL.name}"]', "n-two lacks it", timeout=30)
    page.press(f"Copy {MODEL.name}")
    page.press("Copy to 1 node")
    page.wait_text("[data-transfer]", "done", timeout=60)
    page.wait(
        "both have it",
        lambda: not page.find_all('[data-presence="lacks it"]'),
        timeout=30,
    )
    assert (tmp_path / "two" / MODEL.name).read_bytes() == MODEL.read_bytes()
    page.open(f"{server.url}/#/nodes")
    page.wait("its facts", lambda: re.search(r"of \d+ cores", page.text(".node-cards")), timeout=20)
