"""What an operator does on each page, in a real browser, against the real server and the real model."""

import json
import re
import socket
import subprocess
import sys

import pytest
import support
from selenium.webdriver.common.keys import Keys
from slow import slow_runners
from support import ALIAS, MODEL, Stream, wait_until

LONG = {"max_tokens": 3000, "extra_body": {"ignore_eos": True}}


def go(page, server, name):
    page.open(f"{server.url}/#/{name}")
    page.wait(f"the page {name}", lambda: page.find(f"main[data-page={name}]").text)


def order(page, node, action):
    page.press(f"Manage {node}")
    page.field(action).click()
    page.press(action, "dialog")


def test_replica_is_drained_resumed_and_restarted(page, loaded):
    go(page, loaded, "clusters")
    page.wait_pills(ALIAS, "replica · batch")
    order(page, "local-2", "Drain")
    page.wait_pills(ALIAS, "replica, 1 drained · batch")
    page.wait_text('[data-replica="local-2"] .replica-state', "drained")
    page.find(".pill[data-tone=wait]").send_keys("")
    page.wait_text(".pool .tip-box", "local-2 is drained: it takes nothing new")
    answer = support.ask(loaded.sdk(), max_tokens=4)
    assert answer.x_flotilla["node"] == "local-1"
    order(page, "local-2", "Resume")
    page.wait_pills(ALIAS, "replica · batch")
    before = set(loaded.runners())
    order(page, "local-2", "Restart")
    page.wait_pills(ALIAS, "replica · batch", timeout=60)
    wait_until("another runner", lambda: len(before.intersection(loaded.runners())) == 1, 60)
    page.wait("no dialog", lambda: not page.find_all("dialog"), timeout=60)


def test_request_is_seen_at_work_and_cancelled(page, loaded):
    go(page, loaded, "live")
    stream = Stream(loaded.sdk(), "Tell me of the sea", **LONG)
    page.wait_text("tr[data-live=true]", "answering", timeout=30)
    row = page.find("tr[data-live=true]").get_attribute("data-request")
    page.click(f'[data-request="{row}"] .link')
    page.wait_text(".timeline", "dispatched local-")
    page.press(f"Cancel {row}")
    page.wait_text("dialog", "Its client gets an error instead of the rest of its answer")
    page.press("Cancel the request", "dialog")
    page.wait_text(f'[data-request="{row}"][data-live=false]', "cancelled")
    page.wait_text(".timeline", "ended")
    page.screenshots("live-real")
    with pytest.raises(Exception, match=r"(?i)cancel"):
        stream.end()
    assert page.complaints_of_axe() == []


def test_charts_go_back_a_day_and_tell_replicas_apart(page, loaded):
    support.ask(loaded.sdk(), max_tokens=8)
    wait_until("a step of it", lambda: loaded.get_json("/admin/history")["pools"])
    go(page, loaded, "live")
    for words, seconds in (("1 h", 3600), ("6 h", 21_600), ("24 h", 86_400), ("15 min", 900)):
        page.press(words)
        asked = f"return performance.getEntriesByName(location.origin + '/admin/history?range={seconds}').length"
        page.wait(f"{words} asked for", lambda asked=asked: page.driver.execute_script(asked))
        page.wait("its charts", lambda: len(page.find_all(".chart canvas")) == 5)
    page.press("Replicas")
    page.wait("a replica's line", lambda: re.search("local-[12]", page.text(".charts")))
    assert not page.find_all("main [role=alert]")


def test_stop_and_a_closed_conversation_end_their_requests(page, loaded):
    def gone():
        listed = loaded.get_json("/admin/requests")["requests"]
        return sum(entry["end"] == "the client went away" for entry in listed)

    before = gone()
    go(page, loaded, "chat")
    page.wait("the model", lambda: page.find("select").get_attribute("value") == ALIAS)
    page.press("Add a column")
    page.click(".chat-settings summary")
    page.field("System prompt", ".chat-settings").send_keys("You tell endless stories.")
    page.field("Temperature", ".chat-settings").send_keys("0.5")
    page.fill(page.field("Max tokens", ".chat-settings"), "2000")
    page.click(".chat-settings summary")
    with slow_runners(loaded):
        page.field("Message", ".composer").send_keys("Tell one of the sea.", Keys.ENTER)
        page.wait(
            "both answer",
            lambda: len(page.find_all(".turn[data-answer=streaming]")) == 2,
            timeout=90,
        )
        page.press("Close conversation 2")
        page.wait_text("dialog", "1 running answer is stopped")
        page.press("Close", "dialog")
        page.wait("one column", lambda: len(page.find_all(".chat-column")) == 1)
        wait_until("its request has ended", lambda: gone() == before + 1, 20)
        page.press("Stop")
        page.wait_text(".turn-figures", "stopped after")
        wait_until("the other too", lambda: gone() == before + 2, 20)
    loaded.wait_idle()


def test_error_stays_on_every_page_until_it_is_dismissed_and_can_be_copied(page, loaded):
    go(page, loaded, "clusters")
    page.press(f"Reload {ALIAS}")
    page.fill(page.field("Model"), "/models/there-is-none.gguf")
    page.press("Reload", "dialog")
    page.wait_text(".notice", "there-is-none.gguf", timeout=30)
    page.wait_pills(ALIAS, "replica · batch")
    assert support.ask(loaded.sdk(), max_tokens=4).choices[0].finish_reason
    page.click("a[href='#/chat']")
    message = page.field("Message", ".composer")
    assert "there-is-none.gguf" in page.text(".notice")
    page.press("Copy this error")
    page.wait_text(".notice", "Copied")
    message.send_keys(Keys.CONTROL, "v")
    page.wait("it is pasted", lambda: "there-is-none.gguf" in message.get_attribute("value"))
    assert page.complaints_of_axe() == []
    page.press("Dismiss", ".notice")
    page.wait("no notice", lambda: not page.find_all(".notice"))


def test_conversation_is_listed_and_its_home_forgotten(page, loaded):
    def named():
        return {s["id"]: s for s in loaded.get_json("/admin/sessions")["sessions"] if s["named"]}

    before = named()
    support.ask(loaded.sdk(), max_tokens=4, extra_body={"session_id": "of-this-test"})
    (session,) = [s for id, s in named().items() if id not in before]
    go(page, loaded, "live")
    page.wait_text(f'[data-session="{session["id"]}"]', f"{ALIAS} {session['node']}")
    page.press(f"Forget {session['id']}")
    page.press("Forget", "dialog")
    page.wait("it is gone", lambda: not page.find_all(f'[data-session="{session["id"]}"]'))
    assert session["id"] not in str(loaded.get_json("/admin/sessions"))


def test_setting_is_stored_and_taken_back_and_the_audit_tells_it(page, loaded):
    go(page, loaded, "settings")
    row = '[data-setting="DRAIN_S"]'
    page.wait_text(row, "default")
    field = page.field("DRAIN_S", row)
    page.fill(field, "0.001x")
    page.wait_text(row, "A number from")
    page.fill(field, "33", Keys.ENTER)
    page.wait_text(row, "stored default 120")
    page.click("a[href='#/logs']")
    page.wait_text("#main", "PUT /admin/settings 200")
    page.click("a[href='#/settings']")
    page.press("Reset", row)
    page.wait("it is the default", lambda: "stored" not in page.text(row))
    values = {s["name"]: s["value"] for s in loaded.get_json("/admin/settings")["settings"]}
    assert values["DRAIN_S"] == 120


def test_log_of_a_replica_is_read(page, loaded):
    go(page, loaded, "clusters")
    page.press("Manage local-1")
    page.press("Its log", "dialog")
    page.wait_text(".log-facts", "line")
    page.wait("its lines", lambda: "runner: llama" in page.find(".log").text)
    page.field("Find in the log", ".log-panel").send_keys("no such words")
    page.wait_text(".log-facts", "0 lines found")


def test_machines_tell_their_figures_and_the_doctor_finds_nothing_wrong(page, loaded):
    go(page, loaded, "nodes")
    page.wait_text('[data-node="local-2"]', "in runners", timeout=10)
    page.press("Check everything")
    page.wait_text("[data-doctor]", "link", timeout=30)
    assert page.find("[data-doctor]").get_attribute("data-doctor") == "true"
    page.screenshots("nodes-real")


def test_machine_elsewhere_is_tested_before_it_is_added(page, loaded, tmp_path):
    runner = support.Runner(tmp_path, "--model", MODEL, "--alias", "upstream-name")
    try:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            nobody = free.getsockname()[1]
        go(page, loaded, "clusters")
        page.press("Add Argo cluster", "header")
        page.field("Id").send_keys("lab")
        page.fill(page.field("Local nodes"), "0")
        page.press("Add a machine", "dialog")
        page.find("dialog .node-fields select").send_keys("http")
        url = page.field("Address")
        url.send_keys(f"http://127.0.0.1:{nobody}/v1")
        page.press("Test lab-1", "dialog")
        page.wait_text("dialog .refusal", "start the server there", timeout=30)
        page.screenshots("dialog-test-real")
        page.fill(url, f"{runner.url}/v1")
        page.press("Test lab-1", "dialog")
        page.wait_text("dialog .node-test", "It answers as upstream-name", timeout=60)
        page.press("Add cluster", "dialog")
        page.wait("the dialog to close", lambda: not page.find_all("dialog"))
        page.press("Edit lab")
        page.press("Remove this cluster…")
        page.press("Remove", "dialog")
        page.wait("it is gone", lambda: not page.find_all('[data-cluster="lab"]'))
    finally:
        runner.stop()


def test_examples_of_the_page_work_as_they_stand(page, loaded):
    go(page, loaded, "api")
    curl = page.find('[data-example="curl"] code').text
    said = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, timeout=60)
    assert said.stdout.rstrip().endswith("data: [DONE]"), said
    python = page.find('[data-example="Python"] code').text
    said = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and said.stdout.strip(), said
    follow = page.find('[data-example="Follow everything"] code').text
    with subprocess.Popen(["bash", "-c", f"exec {follow}"], stdout=subprocess.PIPE) as followed:
        assert followed.stdout.readline().startswith(b"data: {")
        followed.terminate()
    status = page.find('[data-example="See how it goes"] code').text
    said = subprocess.run(["bash", "-c", status], capture_output=True, text=True, timeout=60)
    assert json.loads(said.stdout)["pools"][0]["alias"] == ALIAS


def test_typescript_example_of_the_page_works_as_it_stands(page, loaded, sdks):
    go(page, loaded, "api")
    example = sdks / "example.mjs"
    example.write_text(page.find('[data-example="TypeScript"] code').text)
    said = subprocess.run(["node", example], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and said.stdout.strip(), said


def test_model_is_reloaded_without_batch_and_with_it_again(page, loaded):
    go(page, loaded, "clusters")
    for pills in ("replica", "replica · batch"):
        page.press(f"Reload {ALIAS}")
        page.field("Batch").click()
        page.press("Reload", "dialog")
        page.wait_pills(ALIAS, pills, timeout=90)
        wait_until("no load goes on", lambda: loaded.pool()["replicas_live"] == 2, 60)
        assert support.ask(loaded.sdk(), max_tokens=4).choices[0].finish_reason
    assert not page.find_all(".notice")
