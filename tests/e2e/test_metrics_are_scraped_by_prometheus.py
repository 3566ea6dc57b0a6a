import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from support import ALIAS, ROOT, Server, ask, wait_until

TOOLS = pathlib.Path(os.environ.get("FLOTILLA_CACHE") or ROOT / ".cache") / "packages/prometheus/usr/bin"
pytestmark = pytest.mark.skipif(not (TOOLS / "prometheus").exists(),
                                reason=f"Prometheus is not in {TOOLS}: ./test unpacks it on Debian")


class Prometheus:
    """A real one, which scrapes a server each half second and knows our alerts."""

    def __init__(self, folder, server):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        target = urllib.parse.urlparse(server.url).netloc
        config = {"global": {"scrape_interval": "500ms", "evaluation_interval": "1s"},
                  "rule_files": [str(ROOT / "deploy/prometheus-alerts.yaml")],
                  "scrape_configs": [{"job_name": "flotilla", "static_configs": [{"targets": [target]}]}]}
        (folder / "prometheus.yaml").write_text(json.dumps(config))
        self.url = f"http://127.0.0.1:{port}"
        with (folder / "prometheus.log").open("wb") as log:
            self.process = subprocess.Popen(
                [TOOLS / "prometheus", f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def get(self, path, **query):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def result(self, expression):
        """All series that the expression gives."""
        try:
            return self.get("query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            if error.code == 400:
                raise AssertionError(error.read()) from error
            return []  # it is still starting
        except OSError:
            return []

    def value(self, expression):
        """Of the one series that the expression gives; None without any."""
        found = self.result(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def server(start):
    server = start(Server)
    server.load(nodes=2)
    return server


@pytest.fixture
def prometheus(tmp_path, server):
    made = Prometheus(tmp_path, server)
    yield made
    made.stop()


def test_what_happened_is_counted_and_every_alert_can_be_read(server, prometheus):
    for number in range(3):
        ask(server.sdk(), f"Count to {number}", max_tokens=20, extra_body={"ignore_eos": True})
    server.call("POST", "/v1/chat/completions", {"model": "nobody", "messages": [{"role": "user", "content": "x"}]})
    pool = f'{{pool="{ALIAS}"}}'
    wait_until("the answers are counted", lambda: prometheus.value(f"sum(flotilla_generated_tokens_total{pool})") == 60)
    assert prometheus.value(f'flotilla_requests_total{{pool="{ALIAS}",code="200"}}') == 3
    assert prometheus.value('flotilla_requests_total{code="404"}') == 1
    assert prometheus.value(f"sum(flotilla_time_to_first_token_seconds_count{pool})") == 3
    assert prometheus.value(f"sum(flotilla_inter_token_seconds_count{pool})") >= 3 * 15
    assert prometheus.value(f"sum(flotilla_queue_seconds_count{pool})") == 3
    assert prometheus.value(f"sum(flotilla_prompt_tokens_total{pool})") > 60
    for figure in ("time_to_first_token_seconds_count", "inter_token_seconds_count", "queue_seconds_count",
                   "step_seconds_count", "batch_width_count", "prompt_tokens_total", "generated_tokens_total",
                   "cached_prompt_tokens_total", "replica_prompt_tokens_total", "replica_generated_tokens_total",
                   "replica_restarts_total", "session_store_disk_bytes"):
        by = prometheus.value(f'count(count by (pool, replica) (flotilla_{figure}{{pool="{ALIAS}",replica=~"local-.+"}}))')
        assert by, f"flotilla_{figure} is not told by pool and replica"
    assert prometheus.value(f"flotilla_replicas_live{pool}") == 2
    wait_until("each pass is counted", lambda: (prometheus.value("sum(flotilla_batch_width_sum)") or 0) >= 60)
    assert prometheus.value("sum(flotilla_step_seconds_count)") == prometheus.value("sum(flotilla_batch_width_count)")
    rules = wait_until("the rules were evaluated", lambda: [
        rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]])
    assert len(rules) >= 7
    wait_until("no rule is broken", lambda: all(
        rule["health"] == "ok" for group in prometheus.get("rules")["groups"] for rule in group["rules"]))


def test_a_lost_replica_shows_and_its_return_is_counted(server, prometheus):
    victim = server.runners()[0]
    os.kill(victim, signal.SIGKILL)
    restarts = f'sum(flotilla_replica_restarts_total{{pool="{ALIAS}"}})'
    wait_until("its return is counted", lambda: prometheus.value(restarts) == 1)
    live = f'min_over_time(flotilla_replicas_live{{pool="{ALIAS}"}}[1m])'
    assert prometheus.value(live) in (1, 2)  # a return within a scrape's half second shows nowhere
    wait_until("both serve", lambda: prometheus.value(f'flotilla_replicas_live{{pool="{ALIAS}"}}') == 2)


def test_alerts_fire_on_what_they_are_for():
    rules = ROOT / "deploy/prometheus-alerts.yaml"
    checked = subprocess.run([TOOLS / "promtool", "test", "rules", ROOT / "tests/cases/prometheus_alerts.yaml"],
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    named = set(re.findall(r"alert: (\w+)", rules.read_text()))
    tested = set(re.findall(r"alertname: (\w+)", (ROOT / "tests/cases/prometheus_alerts.yaml").read_text()))
    assert tested == named


def test_the_grafana_dashboard_asks_for_what_there_is(shared):
    ask(shared.sdk(), "Hello", max_tokens=4)
    _, _, text = shared.call("GET", "/metrics")
    there = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    board = (ROOT / "deploy/grafana-dashboard.json").read_text()
    asked = set(re.findall(r"\b((?:flotilla|process)_\w+?)(?:_bucket|_sum|_count)?(?=[{\[ ),\"\\])", board))
    asked -= {"flotilla_failovers_total"}  # there once a replica is lost with a request in it
    assert asked and asked <= there, asked - there


def test_each_panel_of_the_grafana_dashboard_shows_something(server, prometheus):
    for number in range(4):
        ask(server.sdk(), f"Count to {number}", max_tokens=8, extra_body={"ignore_eos": True})
    board = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        for target in panel["targets"]:
            if "flotilla_failovers_total" in target["expr"]:
                continue  # there once a replica is lost with a request in it
            expression = target["expr"].replace("$pool", ".*").replace("$__rate_interval", "1m")
            wait_until(f"{panel['title']}: {expression}", lambda: prometheus.result(expression))  # noqa: B023


def series(server):
    """Names with their labels, without values."""
    _, _, text = server.call("GET", "/metrics")
    return {line.rpartition(" ")[0] for line in text.splitlines() if line and not line.startswith("#")}


def test_names_and_kinds_are_as_prometheus_wants_them(server):
    ask(server.sdk(), "Hello", max_tokens=4)
    _, _, text = server.call("GET", "/metrics")
    done = subprocess.run([TOOLS / "promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0 and done.stdout + done.stderr == "", done.stdout + done.stderr
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)", text, re.M))
    for figure in ("time_to_first_token", "inter_token", "queue", "step", "request"):
        assert kinds[f"flotilla_{figure}_seconds"] == "histogram", figure
    assert kinds["flotilla_batch_width"] == "histogram"


def test_what_clients_write_makes_no_series(server):
    def ask_for(number):
        body = {"model": f"nobody-{number}", "user": f"user-{number}", "messages": [{"role": "user", "content": "x"}]}
        headers = {"User-Agent": f"agent-{number}", "x-session-id": f"session-{number}", "x-request-id": f"id-{number}"}
        assert server.call("POST", "/v1/chat/completions", body, headers)[0] == 404
        body |= {"model": ALIAS, "max_tokens": 1}
        assert server.call("POST", "/v1/chat/completions", body, headers)[0] == 200

    for number in range(6):  # every replica has had one
        ask_for(number)
    before = series(server)
    for number in range(6, 40):
        ask_for(number)
    assert series(server) - before == set()
    labels = {name for one in before for name in re.findall(r'[{,](\w+)="', one)}
    assert labels == {"pool", "replica", "code", "le", "version"}
    assert not [one for one in before if "nobody" in one]


def test_metrics_are_not_for_everybody(start, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-long-token\n")
    server = start(Server, "--admin-token-file", token)
    assert server.call("GET", "/metrics")[0] == 401
    assert server.call("GET", "/metrics", headers={"Authorization": "Bearer a-long-token"})[0] == 200
    open_one = start(Server)
    assert open_one.call("GET", "/metrics", headers={"X-Forwarded-For": "10.0.0.1"})[0] == 401
    assert open_one.call("GET", "/metrics")[0] == 200
