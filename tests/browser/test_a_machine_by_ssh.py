"""A machine that is reached by ssh, from its host key to its answers, in a real browser."""

import pathlib
import sys

import pytest
import support
from support import ALIAS, MODEL

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "over_ssh"))

import machines  # noqa: E402


@pytest.fixture
def lab(tmp_path):
    lab = machines.make(tmp_path, ["rack-a"])
    yield lab
    lab.remove()


@pytest.fixture
def reaching(tmp_path, lab):
    """A server that reaches it, and knows nothing of it yet."""
    lab.known_hosts.write_text("")
    running = support.Server(tmp_path, environment=lab.environment)
    try:
        yield running
    finally:
        running.stop()


def test_it_is_tested_trusted_loaded_and_looked_at(page, reaching, lab):
    page.open(reaching.url)
    page.press("Add Argo cluster", "header")
    page.field("Id").send_keys("lab")
    page.fill(page.field("Local nodes"), "0")
    page.press("Add a machine", "dialog")
    page.field("Host").send_keys("rack-a")
    page.press("Test lab-1", "dialog")
    page.wait_text("dialog .refusal", "run: flotilla node trust lab-1", timeout=30)
    page.press("Add cluster", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))

    page.click("a[href='#/nodes']")
    card = '[data-node="lab-1"]'
    page.wait_text(card, "is not known yet", timeout=30)
    page.press("Host key of lab-1")
    key = machines.run("ssh-keygen", "-lf", lab[0].folder / "host_key.pub").stdout.split()[1]
    page.wait_text("dialog .fingerprint", key, timeout=30)
    assert lab.known_hosts.read_text() == ""
    page.press("Store it", "dialog")
    page.wait("it is stored", lambda: lab[0].host_key in lab.known_hosts.read_text(), timeout=30)
    page.wait_text(f"{card} .replica-state", "up", timeout=60)
    page.wait_text(card, "cores", timeout=30)
    page.press("Check everything")
    page.wait_text("[data-doctor]", "link", timeout=30)
    page.screenshots("machine-by-ssh")

    page.click("a[href='#/clusters']")
    page.press("Edit lab")
    page.press("Test lab-1", "dialog")
    page.wait_text("dialog .node-test", "It answers: flotilla", timeout=30)
    page.press("Cancel", "dialog")
    page.press("Load a model", ".cluster-head")
    page.field("Model").send_keys(str(MODEL))
    page.wait_text(".preflight [data-node='lab-1']", "fits", timeout=30)
    page.press("Load", "dialog")
    page.wait_pills(ALIAS, "replica · batch", timeout=90)
    assert len(lab[0].runners()) == 1
    assert support.ask(reaching.sdk(), max_tokens=4).x_flotilla["node"] == "lab-1"
    page.wait_text('[data-replica="lab-1"]', "first token", timeout=20)
