import json
import os
import signal

import pytest

from support import ALIAS, Server, Stream, ask, wait_until


@pytest.fixture
def server(loaded):
    """One for the tests that leave it as they found it."""
    return loaded


def setting(server, name):
    return next(one for one in server.get_json("/admin/settings")["settings"] if one["name"] == name)


def test_settings_have_a_source_are_stored_and_may_be_pinned(start):
    server = start(Server)
    assert setting(server, "QUEUE_MAX") | {"value": 4096, "source": "default"} == setting(server, "QUEUE_MAX")
    pinned = setting(server, "REPLICA_BACKOFF_MIN_S")
    assert pinned["source"] == "environment" and pinned["value"] == 0.2
    status, answer = server.admin("PUT", "/settings", {"QUEUE_MAX": 5, "RUNNER_PREFILL_BATCH": 2})
    assert status == 200, answer
    assert setting(server, "QUEUE_MAX")["source"] == "stored"
    for body, wanted, word in (({"REPLICA_BACKOFF_MIN_S": 1}, 409, "pinned"), ({"QUEUE_MIX": 1}, 400, "QUEUE_MIX"),
                               ({"QUEUE_MAX": 0}, 400, "from 1 to"), ({"QUEUE_MAX": "x"}, 400, "QUEUE_MAX"),
                               ({"QUEUE_MAX": 7, "NOPE": 1}, 400, "NOPE")):
        status, answer = server.admin("PUT", "/settings", body)
        assert status == wanted and word in answer["detail"], (body, answer)
    assert setting(server, "QUEUE_MAX")["value"] == 5
    server.stop()
    again = start(Server, folder=server.state.parent)
    assert setting(again, "QUEUE_MAX")["value"] == 5
    assert again.admin("PUT", "/settings", {"QUEUE_MAX": None})[0] == 200
    assert setting(again, "QUEUE_MAX")["source"] == "default"


def test_a_setting_takes_effect_at_once(start):
    server = start(Server, environment={"FLOTILLA_SYNTHETIC_STEP_US": "50000"})
    server.put_cluster(1)
    assert server.admin("POST", "/clusters/local/load", {"model": "synthetic", "batch": True})[0] == 200
    client = server.sdk()
    assert server.admin("PUT", "/settings", {"QUEUE_MAX": 1})[0] == 200
    options = {"model": "synthetic", "max_tokens": 20, "extra_body": {"ignore_eos": True}}
    streams = [Stream(client, f"Story {number}", **options) for number in range(40)]
    for stream in streams:
        stream.join(120)
    refused = [stream for stream in streams if stream.error is not None]
    assert refused and all(stream.error.status_code == 429 for stream in refused)
    assert int(refused[0].error.response.headers["retry-after"]) >= 1


def test_events_tell_who_did_what(server):
    server.admin("POST", "/clusters/local/unload", {"alias": "nobody"})
    events = wait_until("it is written", lambda: [
        event for event in server.get_json("/admin/events")["events"] if "unload" in event["action"]])
    assert events[0]["status"] == 404 and "nobody" in events[0]["detail"] and events[0]["who"] == "127.0.0.1"
    actions = [(event["action"], event["status"]) for event in server.get_json("/admin/events")["events"]]
    assert ("PUT /admin/clusters/local", 201) in actions and ("POST /admin/clusters/local/load", 200) in actions
    assert len(server.get_json("/admin/events?limit=1")["events"]) == 1


def test_logs_of_a_runner_can_be_read_and_followed(server):
    # What it said last, at the end of its load, may come a moment after the load's answer.
    wait_until("it has said how wide it is", lambda: "width 8" in server.call("GET", "/admin/logs?node=local-1")[2], 10)
    status, headers, text = server.call("GET", "/admin/logs?node=local-1")
    assert status == 200 and headers["content-type"].startswith("text/plain")
    connection = server.connection()
    connection.request("GET", f"/admin/logs?node=local-1&replica={ALIAS}&follow=1")
    answer = connection.getresponse()
    seen = answer.read(len(text.encode()))
    assert b"width 8" in seen
    server.admin("POST", f"/clusters/local/pools/{ALIAS}/replicas/local-1/restart", {})
    seen = answer.read1(4096)
    while b"width 8" not in seen:  # of the fresh one; the old one's last words may come before
        more = answer.read1(4096)
        assert more, seen
        seen += more
    connection.close()
    for query, wanted, word in (("", 400, "node"), ("?node=nowhere", 404, "nowhere"),
                                ("?node=local-1&replica=other", 404, "other")):
        status, _, text = server.call("GET", "/admin/logs" + query)
        assert status == wanted and word in json.loads(text)["detail"], text


def test_sessions_name_their_home_and_can_be_forgotten(server):
    client = server.sdk()
    answer = ask(client, "Hello", max_tokens=8, extra_body={"session_id": "ann"})
    (session,) = server.get_json("/admin/sessions")["sessions"]
    assert session["named"] and session["alias"] == ALIAS and session["node"] == answer.x_flotilla["node"]
    assert session["tokens"] == answer.usage.total_tokens and session["idle_s"] >= 0
    # Two turns of a conversation without a session are one session.
    first = ask(client, "Another matter", max_tokens=8)
    client.chat.completions.create(model=ALIAS, max_tokens=8, messages=[
        {"role": "user", "content": "Another matter"},
        {"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "Go on"}])
    sessions = server.get_json("/admin/sessions")["sessions"]
    assert sorted(one["named"] for one in sessions) == [False, True]
    assert server.call("DELETE", "/admin/sessions/" + session["id"])[0] == 204
    assert server.call("DELETE", "/admin/sessions/" + session["id"])[0] == 404
    assert server.call("DELETE", "/admin/sessions/what")[0] == 404
    assert [one["named"] for one in server.get_json("/admin/sessions")["sessions"]] == [False]


def test_status_of_a_replica_that_died_tells_why_and_when_it_comes_again(start):
    server = start(Server, environment={"REPLICA_BACKOFF_MIN_S": "30", "REPLICA_BACKOFF_MAX_S": "30",
                                        "REPLICA_STABLE_S": "600"})
    server.load(nodes=1)
    for pid in server.runners():
        os.kill(pid, signal.SIGKILL)
    (replica,) = wait_until("it waits", lambda: [one for one in server.replicas() if one["state"] == "waiting"])
    assert 0 < replica["next_retry_in_s"] <= 33 and replica["attempts"] == 0
    assert "SIGKILL" in replica["last_error"] and "width 8" in replica["log_tail"]
