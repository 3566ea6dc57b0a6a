import time

import machines
import pytest
from support import Server, Stream, command_line, is_runner, wait_until

NODES = ("far-a", "far-b")
pytestmark = pytest.mark.waits


@pytest.fixture
def lab(tmp_path):
    lab = machines.make(tmp_path, NODES)
    yield lab
    lab.remove()


def serve(lab, start, grace):
    server = start(Server, environment=lab.environment | {"AGENT_GRACE_S": str(grace)})
    server.load(nodes=lab.nodes(), cluster="lab", context=1024)
    return server


def live(server):
    return {replica["node"]: replica["live"] for replica in server.replicas(cluster="lab")}


def streams_in_both(server):
    long = {"max_tokens": 300, "extra_body": {"ignore_eos": True}}  # longer than a slow link takes to begin
    streams = [Stream(server.sdk(), f"Tell me story {number} about the sea.", **long) for number in range(6)]
    wait_until("both have some of them", lambda: all(
        replica["busy_count"] for replica in server.replicas(cluster="lab")), 30)
    for stream in streams:
        stream.begun.wait(60)
    return streams


def wait_gone(server, name, limit):
    """Until status says that it is away; the state it then has."""
    wait_until(f"{name} is seen to be gone", lambda: not live(server)[name], limit)
    state = wait_until("its link is down", lambda: (lambda s: s["state"] == "down" and s)(
        machines.node_state(server, name)), limit)
    replica = {replica["node"]: replica for replica in server.replicas(cluster="lab")}[name]
    assert replica["state"] == "waiting (node away)", replica
    return state


def test_link_cut_costs_no_answer_and_within_the_grace_nothing_is_loaded(lab, start):
    server = serve(lab, start, grace=60)
    runners = lab[1].runners()
    streams = streams_in_both(server)
    lab[1].cut()
    state = wait_gone(server, "far-b", 15)
    assert state["reason"], state
    for stream in streams:
        stream.end()
    assert live(server)["far-a"]
    lab[1].mend()
    wait_until("it is back", lambda: live(server)["far-b"], 40)
    assert lab[1].runners() == runners
    assert "took over the replica that runs on far-b" in server.log()
    served = {Stream(server.sdk(), f"Hello {number}", max_tokens=8).end().served["node"] for number in range(8)}
    assert "far-b" in served


def test_link_cut_for_longer_than_the_grace_ends_the_runners_and_they_are_loaded_again(lab, start):
    server = serve(lab, start, grace=1)
    runners = lab[1].runners()
    lab[1].cut()
    wait_gone(server, "far-b", 15)
    wait_until("nothing is held there any more", lambda: not any(map(is_runner, runners)), 40)
    Stream(server.sdk(), "Hello", max_tokens=8).end()
    lab[1].mend()
    wait_until("it is back", lambda: live(server)["far-b"], 60)
    assert lab[1].runners() and lab[1].runners() != runners


def test_sshd_killed_with_its_sessions_is_a_blip(lab, start):
    server = serve(lab, start, grace=60)
    runners = lab[1].runners()
    streams = streams_in_both(server)
    lab[1].end_sshd()
    wait_until("it is seen", lambda: not live(server)["far-b"], 5)
    for stream in streams:
        stream.end()
    refused = wait_until("why is said", lambda: (lambda s: "Connection refused" in s["reason"] and s)(
        machines.node_state(server, "far-b")), 30)
    assert "no sshd answers" in refused["reason"]
    lab[1].start_sshd()
    wait_until("it is back", lambda: live(server)["far-b"], 40)
    assert lab[1].runners() == runners


@pytest.mark.timeout(300)
def test_rebooted_machine_comes_back_by_itself(lab, start):
    server = serve(lab, start, grace=60)
    streams = streams_in_both(server)
    lab[1].power_off()
    off = time.monotonic()
    wait_gone(server, "far-b", 15)
    for stream in streams:
        stream.end()
    # It takes a minute, in which it is called again and again.
    wait_until("the minute is over", lambda: time.monotonic() - off >= 60, 70)
    assert server.log().count("node far-b: link down") >= 2
    assert live(server) == {"far-a": True, "far-b": False}
    lab[1].power_on()
    wait_until("it is back", lambda: live(server)["far-b"], 60)
    assert len(lab[1].runners()) == 1
    served = {Stream(server.sdk(), f"Hello {number}", max_tokens=8).end().served["node"] for number in range(8)}
    assert "far-b" in served


def test_load_while_a_machine_is_away_serves_on_the_others(lab, start):
    lab[1].power_off()
    server = start(Server, environment=lab.environment)
    server.put_cluster(lab.nodes(), "lab")
    status, answer = server.admin("POST", "/clusters/lab/load", {"model": "synthetic", "batch": True})
    assert status == 200, answer
    assert {replica["node"]: replica["live"] for replica in answer["replicas"]} == {"far-a": True, "far-b": False}
    lab[1].power_on()
    wait_until("it joins", lambda: all(r["live"] for r in server.replicas("synthetic", "lab")), 60)


def test_a_machine_whose_link_is_held_keeps_no_other_from_being_asked_and_loaded(lab, start):
    proxy = lab.put_proxy(lab[1], delay=0, jitter=0)
    server = start(Server, environment=lab.environment)
    server.put_cluster(lab.nodes(), "lab")
    wait_until("both are up", lambda: {n["state"] for n in machines.overview(server)["nodes"]} == {"up"}, 30)
    proxy.hold()
    report = server.get_json("/admin/clusters/lab/preflight?model=synthetic")
    rows = {row["node"]: row for row in report["nodes"]}
    assert rows["far-a"]["reachable"] and rows["far-a"]["fits"], rows
    assert not rows["far-b"]["reachable"] and rows["far-b"]["verdict"], rows
    status, answer = server.admin("POST", "/clusters/lab/load", {"model": "synthetic", "batch": True})
    assert status == 200, answer
    told = {replica["node"]: replica["state"] for replica in answer["replicas"]}
    assert told == {"far-a": "ready", "far-b": "waiting (node away)"}
    Stream(server.sdk(), "Hello", model="synthetic", max_tokens=4).end()
    assert machines.node_state(server, "far-b")["reason"]
    proxy.let_go()
    wait_until("it joins", lambda: all(r["live"] for r in server.replicas("synthetic", "lab")), 60)


def test_slow_link_that_is_reset_again_and_again_fails_no_request(lab, start):
    proxy = lab.put_proxy(lab[1], delay=0.2, jitter=0.1)
    server = serve(lab, start, grace=60)
    runners = lab[1].runners()
    assert machines.node_state(server, "far-b")["round_trip_ms"] >= 0
    for _ in range(2):
        wait_until("both serve", lambda: all(live(server).values()), 60)
        streams = streams_in_both(server)
        proxy.reset()
        for stream in streams:
            stream.end()
    wait_until("it is back", lambda: live(server)["far-b"], 60)
    assert lab[1].runners() == runners
    slow = wait_until("the delay is measured", lambda: (lambda s: s["round_trip_ms"] > 400 and s)(
        machines.node_state(server, "far-b")), 20)
    assert slow["round_trip_ms"] < 5000


def test_unload_does_not_wait_for_a_machine_that_is_away(lab, start):
    server = serve(lab, start, grace=1)
    lab[1].power_off()
    wait_gone(server, "far-b", 15)
    status, answer = server.admin("POST", "/clusters/lab/unload", {}, timeout=20)
    assert status == 200, answer
    assert not lab[0].runners()


def test_machine_that_is_taken_out_of_its_cluster_is_left_alone(lab, start):
    server = serve(lab, start, grace=60)
    server.put_cluster([lab[0].node()], "lab")
    wait_until("its runner has ended", lambda: not lab[1].runners(), 30)
    wait_until("nothing of ours is left there", lambda: not [
        pid for pid in lab[1].pids() if command_line(pid)[1:2] == ["agent"]], 20)
    Stream(server.sdk(), "Hello", max_tokens=8).end()
    assert len(lab[0].runners()) == 1
    server.put_cluster(lab.nodes(), "lab")
    wait_until("it is back", lambda: live(server).get("far-b"), 60)
