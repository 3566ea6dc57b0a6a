"""The page in states that a real fleet reaches rarely or slowly."""

import json

import answers
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from stand_in import StandIn, busy_fleet, cluster, node, pool, replica

ALIAS = "smollm2-135m-instruct"


def test_pool_row_has_its_pills_figures_and_one_line_a_replica(page, stand_in):
    both = [
        replica(0, busy_count=5, tokens_per_s=120.4, restarts=2),
        replica(1, busy_count=9, tokens_per_s=150.0),
    ]
    stand_in.show(cluster(pools=[pool(replicas=both, queue_depth=4)]))
    stand_in.history = [answers.sample(ALIAS, answers.END, node="local-1", ttft_p50_ms=84.4)]
    page.open(stand_in.url)
    page.wait_pills(ALIAS, "replica · batch")
    page.find(".pills .tip:first-child .pill").send_keys("")
    page.wait_text(".pills .tip:first-child .tip-box", "2 copies of the model, one per node")
    page.find(".pills .tip:last-child .pill").send_keys("")
    page.wait_text(".pills .tip:last-child .tip-box", "up to 8 sequences together")
    assert page.text(".pool-name") == f"{ALIAS} SmolLM2-135M-Instruct.Q4_1.gguf"
    facts = page.text('[data-replica="local-1"] .replica-note')
    assert facts == "first token 84 ms · 312 MB memory · 2 restarts"
    page.wait("a sparkline", lambda: page.find_all('[data-replica="local-1"] .wake-line'))
    assert page.text('[data-part="tokens-per-s"]') == "270 tokens/s"
    assert page.text('[data-part="in-flight"]') == "14 in flight"
    assert page.text('[data-part="queue-depth"]') == "4 in queue"
    assert page.text('[data-replica="local-1"] .replica-work') == "5/8"
    assert page.text('[data-replica="local-2"] .replica-work') == "8/8 +1"
    assert len(page.find_all('[data-replica="local-1"] .cell.loaded')) == 5
    stand_in.history = [answers.sample(ALIAS, answers.END + 5, node="local-1", ttft_p50_ms=None)]
    stand_in.show(cluster(pools=[pool(replicas=both, queue_depth=7)]))
    page.wait_text('[data-part="queue-depth"]', "7 in queue")
    assert "first token 84 ms" in page.text('[data-replica="local-1"] .replica-note')
    page.click(".disclose")
    page.wait("no replica line", lambda: not page.find_all(".replica"))


def test_replica_that_is_out_says_why_and_counts_down(page, stand_in):
    stand_in.show(
        cluster(
            pools=[
                pool(
                    replicas=[
                        replica(0),
                        replica(
                            1,
                            live=False,
                            state="waiting",
                            attempts=3,
                            next_retry_in_s=90,
                            last_error="killed by signal 9",
                        ),
                    ]
                )
            ]
        )
    )
    page.open(stand_in.url)
    page.wait_pills(ALIAS, "replica 1/2 · batch")
    assert "degraded" in page.text(".health")
    page.find(".pill[data-tone=wait]").send_keys("")  # focus is enough, no pointer needed
    page.wait_text(
        ".pool .tip-box", "local-2 is out: killed by signal 9 · attempt 3 · next try in 1 min"
    )
    line = '[data-replica="local-2"] .replica-note'
    first = page.text(line)
    page.wait("the countdown to run", lambda: page.text(line) != first, timeout=4)


def test_batch_that_fell_back_says_why(page, stand_in):
    stand_in.show(
        cluster(pools=[pool(batch=False, batch_size=1, batch_reason="its state is recurrent")])
    )
    page.open(stand_in.url)
    page.wait_pills(ALIAS, "replica · no batch")
    page.find(".pill[data-tone=wait]").send_keys("")
    page.wait_text(".pills .tip:last-child .tip-box", "its state is recurrent")


def test_load_shows_bytes_rate_time_left_and_stall_of_each_node(page, stand_in):
    moving = {
        "node": "local-1",
        "phase": "loading",
        "loaded_bytes": 40_000_000,
        "total_bytes": 80_000_000,
        "bytes_per_s": 9_500_000,
        "stalled": False,
    }
    stuck = moving | {"node": "local-2", "loaded_bytes": 0, "bytes_per_s": 0, "stalled": True}
    load = {"alias": ALIAS, "elapsed_s": 4, "eta_s": 61, "nodes": [moving, stuck]}
    stand_in.show(cluster(loading=[load]))
    page.open(stand_in.url)
    page.wait_text(".loader", "about 1 min 01 s to go")
    line = "local-1 40.0 MB of 80.0 MB 9.5 MB/s loading, 5 s to go"
    assert page.text(".load-node:first-child") == line
    for width in (1100, 820, 360):
        page.size(width, 900)
        assert page.text(".load-node:first-child") == line, width
    assert page.find(".load-node .bar").get_attribute("aria-valuenow") == "50"
    assert "stalled" in page.text(".load-node:last-child")
    for eta_s in (None, 0):
        still = [moving | {"bytes_per_s": 0}, stuck]
        elapsed_s = 5 if eta_s is None else 6
        stand_in.show(
            cluster(loading=[load | {"elapsed_s": elapsed_s, "eta_s": eta_s, "nodes": still}])
        )
        page.wait_text(".loader header", f"{elapsed_s} s so far · waiting")
        assert "to go" not in page.text(".loader")


def test_page_says_that_the_server_is_silent_and_goes_on_when_it_speaks(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    page.open(stand_in.url)
    page.wait_pills(ALIAS, "replica · batch")
    stand_in.silent = True
    page.wait_text(".banner", "silent", timeout=12)
    assert page.pills(ALIAS) == "replica · batch"
    stand_in.silent = False
    page.wait("no banner", lambda: not page.find_all(".banner"), timeout=5)


def test_page_reconnects_by_itself_when_the_server_comes_back(page):
    first = StandIn()
    first.show(cluster(pools=[pool()]))
    page.open(first.url)
    page.wait_pills(ALIAS, "replica · batch")
    first.close()
    page.wait_text(".banner", "Not connected")
    assert page.pills(ALIAS) == "replica · batch"
    second = StandIn(port=first.port)
    try:
        second.show(cluster(pools=[pool(replicas=[replica(0)])]), cluster("other", "Other"))
        page.wait("the new state", lambda: page.find_all('[data-cluster="other"]'), timeout=15)
        assert not page.find_all(".banner")
    finally:
        second.close()


# A browser keeps pages that were left, and opens six connections to a host.
def test_pages_that_were_left_keep_no_connection(page, stand_in):
    answers.everything(stand_in)
    for _ in range(8):
        page.open(f"{stand_in.url}/#/settings")
        page.wait("its settings", lambda: page.find_all(".setting"))
        page.open("about:blank")
    page.driver.back()
    page.wait("the page again", lambda: page.find_all(".setting"))
    stand_in.show(cluster("other", "Other"))
    page.open(f"{stand_in.url}/#/clusters")
    page.wait("news", lambda: page.find_all('[data-cluster="other"]'))


def test_refused_stream_shows_the_servers_words(page, stand_in):
    stand_in.refusal = (
        403,
        {"title": "Forbidden", "detail": "This server answers other names."},
    )
    page.open(stand_in.url)
    page.wait_text(".banner", "This server answers other names.")


def test_add_cluster_dialog_puts_the_cluster_and_shows_wrong_values_at_the_field(page, stand_in):
    page.open(stand_in.url)
    page.wait_text(".harbour", "flotilla load")
    page.press("Add Argo cluster", "header")
    page.field("Id").send_keys("Not good")
    nodes = page.field("Local nodes")
    page.fill(nodes, "0")
    label = page.field("Label")
    label.send_keys("x" * 198)
    page.wait_text("dialog", "At most 197 bytes.")
    page.field("Models folder").send_keys("models")
    page.press("Add cluster", "dialog")
    page.wait_text("dialog", "Small letters, digits and dashes")
    for words in (
        "replica 1 copy per node, concurrent throughput",
        "A whole number from 1 to 64",
        "At most 197 bytes.",
        "A whole path, beginning with a slash, or empty.",
    ):
        assert words in page.text("dialog")
    wrong = [field.accessible_name for field in page.find_all("dialog [aria-invalid=true]")]
    assert wrong == ["Id", "Label", "Local nodes", "Models folder"]
    assert stand_in.requests == []
    page.fill(page.field("Models folder"), Keys.BACKSPACE)
    page.fill(page.field("Id"), "desk")
    page.fill(label, "My desk")
    page.fill(nodes, "2", Keys.ENTER)
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.requests == [
        (
            "PUT",
            "/admin/clusters/desk",
            {
                "id": "desk",
                "label": "My desk",
                "kind": "replica",
                "nodes": [
                    {"id": "desk-1", "label": "My desk 1", "transport": "local"},
                    {"id": "desk-2", "label": "My desk 2", "transport": "local"},
                ],
            },
        )
    ]


def test_add_cluster_dialog_takes_other_machines_and_tests_them(page, stand_in):
    page.open(stand_in.url)
    page.wait_text(".harbour", "flotilla load")
    page.press("Add Argo cluster", "header")
    page.field("Id").send_keys("minis")
    page.fill(page.field("Local nodes"), "0")
    page.wait_text("dialog", "A whole number from 1 to 64")
    page.press("Add a machine", "dialog")
    page.press("Test minis-1", "dialog")
    page.wait_text("dialog", "A host's name or address.")
    page.press("Add cluster", "dialog")
    page.wait("the field", lambda: page.focused() == "Host")
    assert not stand_in.orders, "nothing is asked while the description is wrong"
    page.field("Host").send_keys("mini-a.lan")
    refused = {"detail": "Permission denied; run: ssh-copy-id mini-a.lan"}
    stand_in.answers[("POST", "/admin/nodes/test")] = (422, refused, 0)
    page.press("Test minis-1", "dialog")
    page.wait_text("dialog .refusal", "run: ssh-copy-id mini-a.lan")
    page.press("Copy the error", "dialog .node-test")
    page.wait_text("dialog .node-test", "Copied")
    page.click("dialog .node-more summary")
    page.field("Port").send_keys("70000")
    page.wait_text("dialog", "A whole number from 1 to 65535, or empty.")
    assert page.complaints_of_axe() == []
    page.screenshots("dialog-add-machine")
    page.press("Add cluster", "dialog")
    assert not stand_in.orders[1:], "with a wrong port nothing is sent"
    page.fill(page.field("Port"), "2222")
    page.field("User").send_keys("ops")
    page.wait("what was said of another way is gone", lambda: not page.find_all("dialog .refusal"))
    tested = {"node": "minis-1", "reachable": True, "version": "0.1.0", "outdated": False}
    tested |= {"model": "", "engine": "", "took_ms": 210.4}
    stand_in.answers[("POST", "/admin/nodes/test")] = (200, tested, 0)
    page.press("Test minis-1", "dialog")
    page.wait_text("dialog .node-test", "It answers: flotilla 0.1.0, after 210 ms.")
    page.press("Add cluster", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    nodes = stand_in.orders[-1][2]["nodes"]
    minis = {"id": "minis-1", "transport": "ssh", "host": "mini-a.lan"}
    assert nodes == [minis | {"user": "ops", "port": 2222}]
    assert stand_in.orders[-2][2] == nodes[0], "what was tested is what is added"


@pytest.mark.parametrize("width", [660, 800, 1000, 1360])
def test_sparkline_of_the_fleet_covers_no_figure(page, stand_in, width):
    page.size(width, 860)
    busy = [replica(0, tokens_per_s=123.4, busy_count=8), replica(1)]
    stand_in.show(cluster(pools=[pool(replicas=busy, queue_depth=12)]))
    page.open(stand_in.url)
    page.wait_text(".summary dl", "123")
    ends = page.driver.execute_script(
        """const box = (css) => document.querySelector(css).getBoundingClientRect();
        return [box('.summary dl').right, box('.summary > .wake').left];"""
    )
    assert ends[0] <= ends[1] + 0.5
    assert page.overflow() == 0


def test_a_cluster_of_running_engines_is_offered_a_name_and_no_copy(page, stand_in):
    far = cluster("far", nodes=[node("far", transport="http")])
    stand_in.show(far, cluster("one", nodes=[node("one")]), cluster("two"))
    page.open(stand_in.url)
    said = '[data-cluster="{}"] .empty'
    page.wait_text(said.format("far"), "it copies nothing to them. Until then nothing answers.")
    assert page.text(f'{said.format("far")} code') == "flotilla load far NAME"
    assert "one copy of the model on its node." in page.text(said.format("one"))
    assert "on each of its 2 nodes." in page.text(said.format("two"))
    assert page.text(f'{said.format("two")} code') == "flotilla load two MODEL.gguf --batch"


def test_late_answer_of_a_test_is_not_shown_beside_another_address(page, stand_in):
    page.open(stand_in.url)
    page.press("Add Argo cluster", "header")
    page.field("Id").send_keys("minis")
    page.fill(page.field("Local nodes"), "0")
    page.press("Add a machine", "dialog")
    page.field("Host").send_keys("mini-a.lan")
    route = ("POST", "/admin/nodes/test")
    tested = {"node": "minis-1", "reachable": True, "outdated": False, "model": "", "engine": ""}
    stand_in.answers[route] = (422, {"detail": "mini-a.lan is not reachable"}, 1)
    page.press("Test minis-1", "dialog")
    page.wait("it is asked", lambda: len(stand_in.orders) == 1)
    page.fill(page.field("Host"), "mini-b.lan")
    page.wait("nothing is waited for", lambda: page.text("dialog .node-test") == "Test")
    stand_in.answers[route] = (200, tested | {"version": "0.1.0", "took_ms": 2100.0}, 2)
    page.press("Test minis-1", "dialog")
    page.driver.execute_script(
        """const box = document.querySelector('dialog .node-test'); window.said = [];
        new MutationObserver(() => window.said.push(box.innerText))
            .observe(box, {childList: true, subtree: true, characterData: true});"""
    )
    page.wait_text("dialog .node-test", "It answers: flotilla 0.1.0, after 2100 ms.")
    assert "mini-a.lan" not in " ".join(page.driver.execute_script("return window.said"))


def test_load_dialog_keeps_a_refusal_and_closes_when_the_load_begins(page, stand_in):
    path = "/admin/clusters/local/load"
    stand_in.show(cluster())
    page.open(stand_in.url)
    page.wait_text(".empty", "flotilla load local")
    page.press("Load a model", ".cluster-head")
    page.field("Model").send_keys("/models/none.gguf")
    page.field("Context").send_keys("2048")
    page.field("Alias").send_keys("Not good")
    page.press("Load", "dialog")
    page.wait_text("dialog", "Small letters, digits, dots and dashes")
    page.fill(page.field("Alias"), "mine")
    assert not stand_in.orders
    stand_in.answers[("POST", path)] = (
        422,
        {"detail": "local-1 has no file '/models/none.gguf'"},
        0,
    )
    page.press("Load", "dialog")
    page.wait_text("dialog .refusal", "local-1 has no file '/models/none.gguf'")
    assert stand_in.orders[-1] == (
        "POST",
        path,
        {
            "model": "/models/none.gguf",
            "batch": True,
            "context": 2048,
            "alias": "mine",
            "wait": True,
        },
    )

    stand_in.answers[("POST", path)] = (
        502,
        {"detail": "local-1: not a GGUF file\nlocal-2: same"},
        2,
    )
    page.press("Load", "dialog")
    stand_in.show(cluster(loading=[{"alias": "none", "elapsed_s": 0, "eta_s": None, "nodes": []}]))
    page.wait("the dialog to close", lambda: not page.find_all("dialog"), timeout=2)
    stand_in.show(cluster())
    page.wait_text(".notice", "local-1: not a GGUF file")
    stand_in.show(cluster(pools=[pool()]))
    page.wait_pills(ALIAS, "replica · batch")
    assert "not a GGUF file" in page.text(".notice")
    page.click("a[href='#/chat']")
    page.wait("another page", lambda: page.find_all("main[data-page=chat]"))
    assert "not a GGUF file" in page.text(".notice")
    page.press("Copy this error")
    page.wait_text(".notice", "Copied")
    page.press("Dismiss")
    page.wait("no notice", lambda: not page.find_all(".notice"))


def test_unload_asks_first_and_gives_the_focus_back(page, stand_in):
    stand_in.show(cluster(pools=[pool(replicas=[replica(0, busy_count=3), replica(1)])]))
    page.open(stand_in.url)
    page.press(f"Unload {ALIAS}")
    page.wait_text("dialog", "3 running requests may finish first")
    page.find("dialog").send_keys(Keys.ESCAPE)
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.requests == []
    assert page.driver.switch_to.active_element.accessible_name == f"Unload {ALIAS}"
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.press("Unload", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.requests == [("POST", "/admin/clusters/local/unload", {"alias": ALIAS})]


def test_endpoint_box_has_a_ready_request_for_the_chosen_pool(page, stand_in):
    stand_in.show(cluster(pools=[pool(), pool("other-model")]))
    page.open(stand_in.url)
    page.wait_text(".endpoint", f"{stand_in.url}/v1/chat/completions")
    assert f'"model":"{ALIAS}"' in page.text(".endpoint pre")
    page.find(".endpoint select").find_elements(By.TAG_NAME, "option")[1].click()
    page.wait_text(".endpoint pre", '"model":"other-model"')
    body = page.text(".endpoint pre").split("-d '")[1].rstrip("'")
    assert json.loads(body)["stream"] is True
    page.press("Copy the command", ".endpoint")
    page.wait_text(".endpoint .command button", "Copied")


def outline_is_seen(page):
    return page.driver.execute_script(
        "const style = getComputedStyle(document.activeElement);"
        "return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2"
    )


def test_keyboard_alone_adds_loads_looks_and_unloads(page, stand_in):
    page.open(stand_in.url)
    page.wait_text(".harbour", "flotilla load")
    page.tab_to("Add Argo cluster")
    assert outline_is_seen(page)
    page.keys(Keys.ENTER)
    page.keys("desk", Keys.ENTER)
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.orders[-1][:2] == ("PUT", "/admin/clusters/desk")
    stand_in.show(cluster("desk", "Desk"))
    page.wait_text('[data-cluster="desk"]', "Nothing is loaded")
    page.tab_to("Load a model")
    page.keys(Keys.ENTER)
    page.wait("the dialog", lambda: page.find_all("dialog"))
    page.keys("/models/a.gguf")
    page.tab_to("Batch")
    assert outline_is_seen(page)
    page.keys(Keys.SPACE)
    page.tab_to("Load")
    page.keys(Keys.ENTER)
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    loaded = {"model": "/models/a.gguf", "batch": False, "wait": True}
    assert stand_in.orders[-1] == ("POST", "/admin/clusters/desk/load", loaded)
    out = replica(1, live=False, state="waiting", last_error="killed by signal 9")
    stand_in.show(cluster("desk", "Desk", pools=[pool(replicas=[replica(0), out])]))
    page.wait_pills(ALIAS, "replica 1/2 · batch")
    page.tab_to("replica 1/2")
    page.wait_text(".pool .tip-box", "local-2 is out: killed by signal 9")
    page.keys(Keys.ESCAPE)
    page.tab_to("Manage local-2")
    page.keys(Keys.ENTER)
    page.tab_to("Restart")
    page.keys(Keys.ARROW_DOWN)
    page.wait_text("dialog .button.danger", "Drain")
    page.keys(Keys.ESCAPE)
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    page.tab_to(f"Unload {ALIAS}", backwards=True)
    page.keys(Keys.ENTER)
    page.tab_to("Unload")
    page.keys(Keys.ENTER)
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.orders[-1] == ("POST", "/admin/clusters/desk/unload", {"alias": ALIAS})


def test_keyboard_is_led_to_the_first_wrong_value_and_back_to_the_button(page, stand_in):
    stand_in.show(cluster())
    page.open(stand_in.url)
    page.press("Load a model", ".cluster-head")
    page.field("Alias").send_keys("Not good")
    page.tab_to("Load")
    page.keys(Keys.ENTER)
    page.wait("the first wrong field", lambda: page.focused() == "Model")
    page.keys("/models/none.gguf")
    alias = page.field("Alias")
    page.fill(alias, "mine")
    refused = (422, {"detail": "local-1 has no file '/models/none.gguf'"}, 0.5)
    stand_in.answers[("POST", "/admin/clusters/local/load")] = refused
    page.tab_to("Load")
    page.keys(Keys.ENTER)
    page.wait_text("dialog .refusal", "local-1 has no file")
    page.wait("the button", lambda: page.focused() == "Load")


def test_theme_follows_the_system_until_it_is_chosen(page, stand_in):
    def background():
        return page.driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    page.open(stand_in.url)
    light = background()
    page.size(1360, 860, dark=True)
    dark = background()
    assert light != dark
    page.open(stand_in.url)
    page.press("Switch to light theme")
    page.wait("the light theme", lambda: background() == light)
    page.open(stand_in.url)
    assert background() == light
    page.press("Switch to dark theme")
    page.wait("the dark theme", lambda: background() == dark)
    page.size(1360, 860)
    page.wait("the system's theme", lambda: background() == light)


@pytest.mark.parametrize("width", [360, 480, 700, 900, 1360, 2560])
def test_nothing_is_wider_than_the_window(page, stand_in, width):
    long = "a-model-with-a-rather-long-name-that-somebody-chose-for-a-good-reason"
    nodes = [node(f"machine-with-a-long-name-{index}") for index in range(6)]
    wide = [replica(index, node=n["id"], busy_count=40) for index, n in enumerate(nodes)]
    stand_in.show(*busy_fleet(), cluster("long", "Long", nodes, [pool(long, wide, batch_size=64)]))
    page.size(width, 900)
    page.open(stand_in.url)
    page.wait("the long pool", lambda: page.find_all(f'[data-pool="{long}"] .replica'))
    assert page.overflow() == 0


LIES_ON_ANOTHER = """
const names = ['.replica-who strong', '.replica-state', '.hull', '.replica-work .num',
  '.replica-rate .wake', '.replica-rate small', '.replica-note', '.replica-manage'];
const found = [];
for (const line of document.querySelectorAll('.replica')) {
  const boxes = names
    .map((name) => [name, line.querySelector(name)?.getBoundingClientRect()])
    .filter(([, box]) => box && box.width > 0);
  for (const [a, one] of boxes) for (const [b, other] of boxes) {
    const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (a < b && wide > 1 && high > 1) found.push(`${line.dataset.replica}: ${a} and ${b}`);
  }
}
return found;
"""
WIDTHS_OF_SPARKLINES = """
return [...document.querySelectorAll('.replica-rate .wake')].map((w) => w.getBoundingClientRect().width)
"""


def test_replica_line_shows_all_of_it_at_every_width(page, stand_in):
    few = [
        replica(0, busy_count=9, tokens_per_s=120.4, restarts=2),
        replica(1, live=False, state="waiting", next_retry_in_s=90, last_error="killed by signal 9"),
    ]
    many = [replica(index, busy_count=40, tokens_per_s=987.6) for index in range(2)]
    stand_in.show(cluster(pools=[pool(replicas=few), pool("many", many, batch_size=64)]))
    page.open(stand_in.url)
    page.wait("all replicas", lambda: len(page.find_all(".replica")) == 4)
    for width in (360, 480, 560, 600, 640, 680, 760, 840, 900, 930, 1000, 1100, 1360, 2560):
        page.size(width, 900)
        drawn = page.driver.execute_script(WIDTHS_OF_SPARKLINES)
        assert len(drawn) == 3 and min(drawn) >= 40, (width, drawn)
        assert page.driver.execute_script(LIES_ON_ANOTHER) == [], width
        assert page.overflow() == 0, width


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("state", ["busy", "empty", "error", "add", "load", "unload"])
def test_page_is_accessible(page, stand_in, state, dark):
    page.size(1360, 860, dark)
    stand_in.show(*([] if state == "empty" else busy_fleet()))
    page.open(stand_in.url)
    page.wait("the page", lambda: page.find_all(".summary"))
    match state:
        case "error":
            stand_in.refusal = (503, {"detail": "draining"})
            stand_in.close()
            page.wait_text(".banner", "Not connected")
        case "add":
            page.press("Add Argo cluster", "header")
            page.press("Add cluster", "dialog")
        case "load":
            page.press("Load a model", ".cluster-head")
            page.press("Load", "dialog")
        case "unload":
            page.press(f"Unload {ALIAS}")
    assert page.complaints_of_axe() == []


def test_screenshots_of_a_busy_fleet(page, stand_in):
    stand_in.show(*busy_fleet())
    page.open(stand_in.url)
    page.wait_pills(ALIAS, "replica · batch")
    page.screenshots("busy")
