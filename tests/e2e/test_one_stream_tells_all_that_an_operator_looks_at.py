"""GET /admin/stream: the fleet, what machines say, requests and the audit, each as it changes."""

import json
import re
import threading
import time

import pytest
from support import ALIAS, Server, Stream, wait_until
from test_openapi_describes_what_the_server_says import document, fits  # noqa: F401

SCHEMAS = {"": "Overview", "nodes": "NodeList", "requests": "RequestList", "audit": "EventList"}


class Followed:
    """What one who follows has been told, by the event's name."""

    def __init__(self, server):
        self.told = {}
        self._connection = server.connection(30)
        self._connection.request("GET", "/admin/stream")
        self._answer = self._connection.getresponse()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        text = b""
        try:
            while piece := self._answer.read1():
                *events, text = (text + piece).split(b"\n\n")
                for event in events:
                    named = re.fullmatch(rb"(?:event: (\w+)\n)?data: (.*)", event)
                    self.told.setdefault((named[1] or b"").decode(), []).append(json.loads(named[2]))
        except (OSError, ValueError, AttributeError):
            pass

    def last(self, name):
        return self.told.get(name, [None])[-1]

    def close(self):
        self._connection.close()


@pytest.fixture
def followed(shared):
    one = Followed(shared)
    yield one
    one.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"), environment={"FLOTILLA_SYNTHETIC_STEP_US": "10000"})
    server.load(nodes=2, model="synthetic", alias=ALIAS)
    yield server
    server.stop()


def test_it_begins_with_all_of_it_and_each_is_as_described(followed, fits):  # noqa: F811
    wait_until("all four", lambda: set(followed.told) == set(SCHEMAS), 10)
    for name, schema in SCHEMAS.items():
        fits(followed.last(name), schema)


def test_a_machines_figures_come_again_and_again(followed):
    wait_until("three times", lambda: len(followed.told.get("nodes", [])) >= 3, 15)
    nodes = followed.last("nodes")["nodes"]
    assert [node["node"] for node in nodes] == ["local-1", "local-2"]
    assert nodes[0]["memory_total_bytes"] > nodes[0]["memory_available_bytes"] > 0
    assert {one["alias"] for one in nodes[0]["replicas"]} == {ALIAS}


def test_a_request_is_seen_under_way_and_when_it_has_ended(shared, followed):
    stream = Stream(shared.sdk(), "Story", max_tokens=200, extra_body={"ignore_eos": True})
    states = lambda: [(one["phase"], one["end"]) for one in (followed.last("requests") or {"requests": []})["requests"]]  # noqa: E731
    wait_until("it is under way", lambda: ("answering", "") in states() or ("answering", None) in states(), 20)
    stream.end()
    wait_until("it has ended", lambda: ("ended", "completed") in states(), 20)


def test_what_somebody_did_is_told_and_not_again(shared, followed):
    wait_until("the audit", lambda: followed.last("audit"), 10)
    assert shared.admin("PUT", "/settings", {"DRAIN_S": 7})[0] == 200
    newest = lambda: followed.last("audit")["events"][0]["action"]  # noqa: E731
    wait_until("it is told", lambda: newest() == "PUT /admin/settings", 10)
    told = len(followed.told["audit"])
    states = len(followed.told[""])
    wait_until("two more states", lambda: len(followed.told[""]) >= states + 2, 10)
    assert len(followed.told["audit"]) == told


def test_many_changes_are_told_at_most_ten_times_a_second(shared, followed):
    wait_until("the first state", lambda: followed.last(""), 10)
    nodes = [{"id": node, "threads": 1} for node in ("local-1", "local-2")]  # as they are
    before, began, changes = len(followed.told[""]), time.monotonic(), 0
    while time.monotonic() < began + 3:
        changes += 1
        status, answer = shared.admin("PUT", "/clusters/local", {"label": f"name {changes}", "nodes": nodes})
        assert status == 200, answer
    wait_until("the last", lambda: followed.last("")["clusters"][0]["label"] == f"name {changes}", 10)
    told = len(followed.told[""]) - before
    assert changes > 60, "more than can be told"
    assert 5 <= told <= 10 * (time.monotonic() - began) + 2, (told, changes)
