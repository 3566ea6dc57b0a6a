"""The pages beside the clusters: live charts, bench, nodes, settings, logs, API."""

import gzip
import json
import re
import threading

import answers
import pytest
from selenium.webdriver.common.keys import Keys
from stand_in import built_page, busy_fleet, cluster, pool
from support import ALIAS, Stream

PAGES = [
    "clusters",
    "chat",
    "live",
    "bench",
    "nodes",
    "models",
    "keys",
    "settings",
    "logs",
    "api",
]
FIRST_LOAD_MAX = 250_000


def go(page, server, name):
    page.open(f"{server.url}/#/{name}")
    page.wait(f"the page {name}", lambda: page.find(f"main[data-page={name}]").text)


def fill(page, stand_in, name):
    """The page with something on it."""
    answers.everything(stand_in)
    stand_in.transfers = [answers.transfer()]
    stand_in.show(*busy_fleet())
    go(page, stand_in, name)
    wanted = {"live": ".chart canvas", "settings": ".setting", "logs": ".log", "nodes": ".facts"}
    wanted["keys"] = "[data-usage]"
    wanted["models"] = "[data-model]"
    page.wait("its content", lambda: page.find_all(wanted.get(name, "main > *")))
    if name == "bench":
        page.press("Measure")
        page.wait("the result", lambda: page.find_all(".gantt-node"))
    if name == "nodes":
        page.press("Check everything")
        page.wait("the findings", lambda: page.find_all("[data-level]"))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_accessible_and_fits_from_a_telephone_to_a_wall(page, stand_in, name, dark):
    page.size(1360, 860, dark)
    fill(page, stand_in, name)
    assert page.complaints_of_axe() == []
    if dark:
        page.screenshots(f"page-{name}")
    for width in (360, 700, 2560):
        page.size(width, 900, dark)
        assert page.overflow() == 0, width
        if width == 360:
            assert page.complaints_of_axe() == []


@pytest.mark.parametrize("name", PAGES)
def test_no_page_asks_again_while_the_stream_tells(page, stand_in, name):
    def out():
        fleet = busy_fleet()
        for shown in fleet:
            for one in shown["pools"]:
                one["replicas_live"] = 0
        return fleet

    fill(page, stand_in, name)
    stand_in.show(*out())
    page.wait_text(".health", "no replica live")
    asked = list(stand_in.requests)
    for second in range(5):
        stand_in.show(*busy_fleet(second))
        page.wait_text(".health", "degraded")
        stand_in.show(*out())
        page.wait_text(".health", "no replica live")
    assert stand_in.requests == asked


@pytest.mark.parametrize("name", PAGES)
def test_a_page_whose_routes_the_server_lacks_says_so_politely(page, stand_in, name):
    stand_in.show(cluster(pools=[pool()]))
    go(page, stand_in, name)
    if name == "bench":
        stand_in.answers[("POST", "/admin/bench")] = (404, {"detail": "there is nothing at x"}, 0)
        page.press("Measure")
    if name in ("live", "bench", "models", "keys", "settings", "logs"):
        page.wait_text(".unavailable", "This server does not offer")
    assert not page.find_all("main .trouble, main [role=alert]")
    assert page.complaints_of_axe() == []


def test_address_names_the_page_and_the_keyboard_moves_between_them(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    go(page, stand_in, "live")
    assert page.text("nav [aria-current]") == "Live"
    page.find("nav [aria-current]").send_keys(Keys.ARROW_RIGHT)
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait_text("nav [aria-current]", "Bench")
    page.driver.back()
    page.wait_text("nav [aria-current]", "Live")
    page.driver.refresh()
    page.wait_text("nav [aria-current]", "Live")
    page.open(f"{stand_in.url}/#/nonsense")
    page.wait_text("nav [aria-current]", "Clusters")
    skip = page.find("a.skip")
    skip.send_keys(Keys.ENTER)
    assert page.driver.switch_to.active_element.get_attribute("id") == "main"


def test_charts_are_read_once_and_go_on_with_the_stream(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    answers.everything(stand_in)
    stand_in.answers[("GET", "/admin/history")] = answers.history(ALIAS)
    go(page, stand_in, "live")
    page.wait("5 charts", lambda: len(page.find_all(".chart canvas")) == 5)
    stand_in.history = [answers.sample(ALIAS, answers.END + 5, tokens_per_s=417, queue=31)]
    page.wait_text(".charts", "417", timeout=5)
    assert "31" in page.text(".chart:nth-child(4)")
    asked = [r for r in stand_in.requests if "history" in r[1]]
    assert len(asked) == 1, "no polling"
    page.press("24 h")
    page.wait("the day", lambda: "range=86400" in str(stand_in.requests))


def test_charts_show_one_pools_replicas(page, stand_in):
    answers.everything(stand_in)
    stand_in.show(cluster(pools=[pool()]))
    go(page, stand_in, "live")
    page.wait("the charts", lambda: page.find_all(".chart canvas"))
    both = answers.history(ALIAS, nodes=("local-1", "local-2"))
    stand_in.answers[("GET", "/admin/history")] = both
    page.press("Replicas")
    page.wait_text(".chart-legend", "local-1")
    assert f"by=replica&pool={ALIAS}" in str(stand_in.requests)
    stand_in.history = [answers.sample(ALIAS, answers.END + 5, node="local-2", tokens_per_s=271)]
    page.wait_text(".chart-legend", "271", timeout=5)


def test_each_of_many_replicas_can_be_drawn(page, stand_in):
    answers.everything(stand_in)
    stand_in.show(cluster(pools=[pool()]))
    stand_in.history = []
    nodes = [f"rack-{number}" for number in range(8)]
    stand_in.answers[("GET", "/admin/history")] = answers.history(ALIAS, nodes=nodes)
    go(page, stand_in, "live")
    page.press("Replicas")
    page.wait_text('[data-part="not-drawn"]', "The first 6 of 8 are drawn")
    shown = page.field("Replicas shown", ".page-head")
    shown.send_keys("rack-7")
    page.wait("that one", lambda: not page.find_all('[data-part="not-drawn"]'))
    page.wait_text(".chart:nth-child(2) .chart-legend", "p50")
    assert shown.get_attribute("value") == "rack-7"
    assert page.complaints_of_axe() == []


def test_request_is_cancelled_and_its_timeline_opens(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    answers.everything(stand_in)
    moments = [
        {"at_ms": 0.2, "what": "queued"},
        {"at_ms": 4, "what": "dispatched", "detail": "local-1"},
    ]
    stand_in.answers[("GET", "/admin/requests/req-live")] = (
        200,
        answers.request("req-live") | {"timeline": moments},
        0,
    )
    go(page, stand_in, "live")
    page.wait_text("tbody tr:first-child", "answering")
    assert "the client went away" in page.text('[data-request="req-gone"]')
    page.click('[data-request="req-live"] .link')
    page.wait_text(".timeline", "4 ms dispatched local-1")
    sent = ("POST", "/admin/requests/req-live/cancel", {})
    stand_in.answers[sent[:2]] = (409, {"detail": "it has ended"}, 0)
    page.press("Cancel req-live")
    page.wait_text("dialog", "Its client gets an error instead of the rest of its answer")
    assert page.complaints_of_axe() == []
    page.press("Let it go on", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.orders == []
    page.press("Cancel req-live")
    page.press("Cancel the request", "dialog")
    page.wait_text("dialog .refusal", "it has ended")
    assert stand_in.orders == [sent]
    del stand_in.answers[sent[:2]]
    page.press("Cancel the request", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))


IN_VIEW = """
const box = document.querySelector(arguments[0]).closest('.table-box');
const edge = box.getBoundingClientRect().right + 0.5;
const inside = (element) => element.getBoundingClientRect().right <= edge;
return box.scrollWidth <= box.clientWidth && [...box.querySelectorAll(arguments[0])].every(inside);
"""


@pytest.mark.parametrize("width", [360, 390])
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("live", "[data-request] .matters"),
        ("live", "[data-request] .acts"),
        ("keys", "[data-key] .acts"),
        ("models", "[data-model] .nodes"),
    ],
)
def test_what_matters_of_a_row_is_in_view_on_a_telephone(page, stand_in, name, wanted, width):
    page.size(width, 860)
    fill(page, stand_in, name)
    page.wait("its rows", lambda: page.find_all(wanted))
    assert page.driver.execute_script(IN_VIEW, wanted)
    assert page.complaints_of_axe() == []


def test_a_sessions_home_is_forgotten_after_asking(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    answers.everything(stand_in)
    go(page, stand_in, "live")
    page.press("Forget 00c0ffee00c0ffee")
    page.wait_text("dialog", "A request of it that runs goes on")
    assert stand_in.orders == [] and page.complaints_of_axe() == []
    page.press("Forget", "dialog")
    page.wait("the dialog to close", lambda: not page.find_all("dialog"))
    assert stand_in.orders == [("DELETE", "/admin/sessions/00c0ffee00c0ffee", {})]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("live", "/admin/history"),
        ("live", "/admin/sessions"),
        ("settings", "/admin/settings"),
        ("models", "/admin/models"),
        ("keys", "/admin/keys"),
        ("keys", "/admin/usage"),
        ("logs", "/admin/logs"),
    ],
)
def test_what_cannot_be_shown_says_why_can_be_copied_and_tried_again(page, stand_in, name, path):
    stand_in.show(cluster(pools=[pool()]))
    answers.everything(stand_in)
    good = stand_in.answers[("GET", path)]
    stand_in.answers[("GET", path)] = (503, {"detail": f"the disk of {name} is away"}, 0)
    go(page, stand_in, name)
    page.wait_text("main [role=alert]", f"the disk of {name} is away")
    page.press("Copy the error", "main [role=alert]")
    page.wait_text("main [role=alert]", "Copied")
    assert page.complaints_of_axe() == []
    stand_in.answers[("GET", path)] = good
    page.press("Try again", "main [role=alert]")
    page.wait("it is shown", lambda: not page.find_all("main [role=alert]"))


def test_machines_figures_and_the_audit_come_with_the_stream(page, stand_in):
    stand_in.show(*busy_fleet())
    answers.everything(stand_in)
    go(page, stand_in, "nodes")
    page.wait_text('[data-node="mini-c"]', "5.2 of 8 cores")
    stand_in.answers[("GET", "/admin/nodes")] = answers.nodes(
        answers.telemetry("mini-c", cpu_load=7.75)
    )
    page.wait_text('[data-node="mini-c"]', "7.8 of 8 cores", timeout=5)
    go(page, stand_in, "logs")
    page.wait_text("#main", "an id is small letters, digits and dashes")
    newest = answers.EVENTS[1]["events"][0] | {"action": "DELETE /admin/keys/k", "status": 204}
    stand_in.answers[("GET", "/admin/events")] = (200, {"events": [newest]}, 0)
    page.wait_text("#main", "DELETE /admin/keys/k", timeout=5)
    polled = [r for r in stand_in.requests if "nodes" in r[1] or "events" in r[1]]
    assert polled == []


def test_requests_are_told_while_work_goes_on(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    answers.everything(stand_in)
    go(page, stand_in, "live")
    page.wait_text("tbody tr:first-child", "answering")
    over = threading.Event()
    speed = iter(range(10_000))

    def work():
        while not over.wait(0.1):
            stand_in.show(cluster(pools=[pool(tokens_per_s=next(speed))]))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        done = answers.request("req-live", end="completed, and seen")
        stand_in.answers[("GET", "/admin/requests")] = answers.requests(done)
        page.wait_text("tbody", "completed, and seen", timeout=4)
    finally:
        over.set()
        worker.join()


def test_bench_draws_the_waves_of_each_replica(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    stand_in.answers[("POST", "/admin/bench")] = answers.bench(streams=20, width=4)
    go(page, stand_in, "bench")
    page.field("Requests", ".bench-form").send_keys("x")
    page.wait_text(".bench-form", "A whole number from 1 to 256.")
    assert not page.button("Measure").is_enabled()
    page.field("Requests", ".bench-form").send_keys(Keys.BACKSPACE)
    page.press("Measure")
    page.wait_text('[data-node="local-1"]', "10 streams, 4 at once, 1000 tokens")
    assert len(page.find_all('[data-node="local-2"] .lane')) == 10
    assert "20/20 whole answers" in page.text(".dials")
    stand_in.answers[("POST", "/admin/bench")] = (409, {"detail": "a measurement is under way"}, 0)
    page.press("Measure")
    page.wait_text(".refusal", "a measurement is under way")


def test_setting_is_changed_reset_and_wrong_values_are_shown_at_the_field(page, stand_in):
    stand_in.show(cluster())
    answers.everything(stand_in)
    go(page, stand_in, "settings")
    row = '[data-setting="RUNNER_BATCH_SIZE"]'
    page.wait_text(row, "default takes effect at the next load")
    assert not page.find('[data-setting="DRAIN_S"] input').is_enabled()
    field = page.field("RUNNER_BATCH_SIZE", row)
    field.send_keys("8")
    page.wait_text(row, "A number from 1 to 64.")
    field.send_keys(Keys.BACKSPACE, Keys.BACKSPACE, "16", Keys.ENTER)
    changed = ("PUT", "/admin/settings", {"RUNNER_BATCH_SIZE": 16})
    page.wait("it was sent", lambda: changed in stand_in.requests)
    page.press("Reset", '[data-setting="QUEUE_MAX"]')
    reset = ("PUT", "/admin/settings", {"QUEUE_MAX": None})
    page.wait("it was sent", lambda: reset in stand_in.requests)
    page.field("Find a setting", ".page").send_keys("drain")
    page.wait("one setting", lambda: len(page.find_all(".setting")) == 1)


def test_a_log_of_ten_thousand_lines_does_not_freeze_the_page(page, stand_in):
    stand_in.show(cluster(pools=[pool()]))
    answers.everything(stand_in)
    stand_in.answers[("GET", "/admin/logs")] = (200, answers.LOG * 4, 0)
    go(page, stand_in, "logs")
    page.wait_text(".log-facts", "10000 lines, 32000 older ones dropped", timeout=5)
    shown = page.find(".log").text.splitlines()
    assert len(shown) == 400 and "step 10499" in shown[-1]
    page.field("Find in the log", ".log-panel").send_keys("step 10400")
    page.wait_text(".log-facts", "1 line found", timeout=2)
    page.wait_text(".page", "an id is small letters, digits and dashes")


def test_examples_are_ready_for_this_server_and_its_model(page, stand_in):
    stand_in.show(cluster(pools=[pool(), pool("other-model")]))
    go(page, stand_in, "api")
    page.wait_text('[data-example="curl"]', f"{stand_in.url}/v1/chat/completions")
    assert "authorization" not in page.text(".page").lower()
    code = page.find('[data-example="Python"] code').text
    compile(code, "example", "exec")
    assert f'base_url="{stand_in.url}/v1"' in code and f'model="{ALIAS}"' in code
    assert f'baseURL: "{stand_in.url}/v1"' in page.text('[data-example="TypeScript"]')


def test_examples_name_the_key_and_the_token_where_the_server_wants_them(page, stand_in):
    stand_in.keys = stand_in.login = True
    stand_in.show(cluster(pools=[pool()]))
    go(page, stand_in, "api")
    key = '-H "authorization: Bearer $FLOTILLA_API_KEY"'
    page.wait_text('[data-example="curl"]', key)
    python = page.find('[data-example="Python"] code').text
    compile(python, "example", "exec")
    assert python.startswith("import os") and 'api_key=os.environ["FLOTILLA_API_KEY"]' in python
    typescript = page.text('[data-example="TypeScript"]')
    assert 'apiKey: process.env["FLOTILLA_API_KEY"]' in typescript
    token = '-H "authorization: Bearer $FLOTILLA_ADMIN_TOKEN"'
    for name in ("Load a model", "See how it goes", "Follow everything"):
        assert token in page.text(f'[data-example="{name}"]'), name
    page.click("a[href='#/clusters']")
    page.wait_text(".endpoint", key)


def test_first_load_is_small_and_nothing_comes_from_elsewhere():
    dist = built_page()
    files = [
        file
        for file in dist.rglob("*")
        if file.suffix in (".html", ".js", ".css", ".woff2", ".svg")
    ]
    size = sum(len(gzip.compress(file.read_bytes(), 9)) for file in files)
    assert size <= FIRST_LOAD_MAX, f"{size} bytes compressed"
    words = (dist / "index.html").read_text() + "".join(
        file.read_text() for file in files if file.suffix == ".css"
    )
    assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", words)


def test_every_page_of_the_real_server_is_whole_and_comes_from_it_alone(page, server):
    server.load(nodes=2)
    for name in PAGES:
        go(page, server, name)
        page.wait("it is whole", lambda: not re.search("(Asking|Looking on the nodes|Reading)…", page.text("main")))
        assert not page.find_all(".unavailable, main [role=alert], .banner"), page.text("main")
        assert page.complaints_of_axe() == [], name
        page.screenshots(f"real-{name}")
        for width in (360, 2560):
            page.size(width, 900)
            assert page.overflow() == 0, (name, width)
        page.size(1360, 860)
    loaded = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    names = page.driver.execute_script(loaded)
    assert any(name.endswith(".js") for name in names)
    assert [name for name in names if not name.startswith(f"{server.url}/")] == []


def test_charts_and_bench_of_the_real_server(page, server):
    server.load(nodes=2)
    streams = [Stream(server.sdk(), f"Story {n}", max_tokens=60) for n in range(6)]
    go(page, server, "live")
    for stream in streams:
        stream.end()
    page.wait("a chart's figure", lambda: re.search(r"p99 \d", page.text(".charts")), timeout=20)
    assert server.call("GET", "/admin/history?range=2d")[0] == 400
    assert server.call("GET", "/admin/history?pool=none")[0] == 404
    (series,) = server.get_json(f"/admin/history?pool={ALIAS}&range=1h")["pools"]
    assert max(series["tokens_per_s"]) > 0 and max(v or 0 for v in series["ttft_p99_ms"]) > 1
    go(page, server, "bench")
    tokens = page.field("Tokens", ".bench-form")
    page.fill(tokens, "20")
    page.press("Measure")
    page.wait_text(".dials", "20/20 whole answers", timeout=90)
    nodes = {node.get_attribute("data-node") for node in page.find_all(".gantt-node")}
    assert nodes == {"local-1", "local-2"}
    page.screenshots("bench-real")
    status, _, text = server.call("POST", "/admin/bench", {"requests": 0})
    assert status == 400 and "requests" in json.loads(text)["detail"]
    assert server.call("POST", "/admin/bench", {"model": "none"})[0] == 404
