"""The operator's first ten minutes in a real browser, against the real server and the real model."""

import os
import re
import signal

from selenium.webdriver.common.keys import Keys
from slow import slow_runners
from support import ALIAS, MODEL, Server, Stream

ROW = f'[data-pool="{ALIAS}"]'


def test_add_load_work_kill_heal_and_unload(page, server):
    page.open(server.url)
    page.wait_text(".harbour", "flotilla cluster add")

    page.press("Add Argo cluster", "header")
    page.field("Id").send_keys("desk")
    page.field("Label").send_keys("My desk", Keys.ENTER)
    page.wait_text('[data-cluster="desk"] .empty', "flotilla load desk")

    page.press("Load a model", ".cluster-head")
    page.field("Model").send_keys(str(MODEL))
    assert page.field("Batch").is_selected()
    page.press("Load", "dialog")
    page.wait_pills(ALIAS, "replica · batch", timeout=60)
    assert not page.find_all("dialog")
    page.wait_text(".health", "ok")

    options = {"max_tokens": 100, "extra_body": {"ignore_eos": True}}
    streams = [Stream(server.sdk(), f"Story {number}", **options) for number in range(12)]
    page.wait(
        "both replicas at work",
        lambda: len(page.find_all(f"{ROW} .cell.loaded")) >= 8
        and page.text(f'{ROW} [data-part="tokens-per-s"]') != "0 tokens/s",
    )
    page.screenshots("pool-at-work")
    for node in ("desk-1", "desk-2"):
        line = f'[data-replica="{node}"]'
        page.wait_text(f"{line} .replica-note", "first token", timeout=20)
        assert re.search(r"first token \d+ ms · [\d.]+ [MG]B memory", page.text(f"{line} .replica-note"))
        assert page.text(f"{line} .replica-state") == "ready"
        assert re.fullmatch(r"[0-8]/8( \+\d+)?", page.text(f"{line} .replica-work"))
        assert page.find_all(f"{line} .replica-rate .wake-line")
        assert page.text(f"{line} .replica-rate").endswith("tokens/s")
    for stream in streams:
        stream.end()
    page.wait_text(f'{ROW} [data-part="in-flight"]', "0 in flight")

    killed = min(server.runners())
    os.kill(killed, signal.SIGKILL)
    page.wait_pills(ALIAS, "replica 1/2 · batch", timeout=10)
    (node,) = [
        replica["node"] for replica in server.replicas(cluster="desk") if not replica["live"]
    ]
    page.find(f"{ROW} .pill[data-tone=wait]").send_keys("")  # focus is enough, no pointer needed
    page.wait_text(f"{ROW} .tip-box", f"{node} is out: ")
    page.wait_text(f"{ROW} .tip-box", "attempt")
    page.wait_text(f"{ROW} .tip-box", "next try in")
    said = page.text(f"{ROW} .tip-box")
    assert "SIGKILL" in said
    page.wait("the countdown to run", lambda: page.text(f"{ROW} .tip-box") != said, timeout=4)
    page.screenshots("replica-out")
    page.wait_pills(ALIAS, "replica · batch", timeout=60)
    assert killed not in server.runners()
    page.wait_text(f'[data-replica="{node}"]', "1 restart")

    page.press(f"Unload {ALIAS}")
    page.press("Unload", "dialog")
    page.wait_text('[data-cluster="desk"] .empty', "Nothing is loaded", timeout=30)
    assert not server.runners()


def test_load_shows_what_each_node_has_loaded(page, server):
    server.put_cluster(2)
    page.open(server.url)
    page.press("Load a model", ".cluster-head")
    page.field("Model").send_keys(str(MODEL))
    progress = re.compile(r"local-2 [\d.]+ [kM]?B of [\d.]+ MB (?:[\d.]+ [kMG]?B/s|–) ")
    with slow_runners(server):
        page.press("Load", "dialog")
        page.wait(
            "its bytes and their rate",
            lambda: progress.match(page.text(".load-node:nth-child(2)"))
            and page.find(".load-node .bar").get_attribute("aria-valuenow"),
            timeout=60,
        )
        page.screenshots("loader-real")
    page.wait_pills(ALIAS, "replica · batch", timeout=60)
    assert not page.find_all(".loader, dialog")


def test_load_that_fails_says_why_in_the_servers_words(page, server):
    server.put_cluster(2)
    page.open(server.url)
    page.press("Load a model", ".cluster-head")
    page.field("Model").send_keys("/models/there-is-none.gguf")
    page.press("Load", "dialog")
    page.wait_text("[role=alert], .notice", "there-is-none.gguf")
    assert server.pool("there-is-none") is None


def test_page_comes_compressed_with_a_strict_policy_and_is_asked_for_again_by_its_tag(server):
    status, headers, _ = server.call("GET", "/")
    assert (status, headers["Content-Encoding"]) == (200, "gzip")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    status, _, body = server.call("GET", "/", headers={"If-None-Match": headers["ETag"]})
    assert (status, body) == (304, "")


def test_page_reconnects_after_a_restart_and_the_pool_is_back(page, server, tmp_path):
    server.load(nodes=1)
    page.open(server.url)
    page.wait_pills(ALIAS, "replica · batch")
    port = server.port
    server.stop()
    page.wait_text(".banner", "Not connected")
    again = Server(tmp_path, port=port)
    try:
        page.wait("no banner", lambda: not page.find_all(".banner"), timeout=20)
        page.wait_pills(ALIAS, "replica · batch", timeout=60)
    finally:
        again.stop()
