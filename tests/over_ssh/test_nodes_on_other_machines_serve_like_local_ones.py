import os
import pathlib
import re
import signal

import machines
import pytest
from support import MODEL, Server, Stream, is_runner, wait_until

NODES = ("mini-a", "mini-b", "mini-c")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = machines.make(tmp_path_factory.mktemp("lab"), NODES)
    yield lab
    lab.remove()


@pytest.fixture(scope="module")
def server(lab, tmp_path_factory):
    """One for the tests that leave it as they found it; the last of them ends it."""
    server = Server(tmp_path_factory.mktemp("server"),
                    environment=lab.environment | {"RUNNER_PREFILL_BATCH": "3"})
    try:
        answer = server.load(nodes=lab.nodes(env={"OMP_NUM_THREADS": "7"}), cluster="lab", context=1024)
        assert [replica["host"] for replica in answer["replicas"]] == list(NODES)
        yield server
    finally:
        server.stop()


def test_requests_go_to_all_of_them_and_nothing_listens_but_sshd(server, lab):
    streams = [Stream(server.sdk(), f"Tell me story {number}.", max_tokens=30) for number in range(12)]
    served = {stream.end().served["node"] for stream in streams}
    assert served == set(NODES)
    for machine in lab:
        assert len(machine.runners()) == 1
        ports = re.findall(r"LISTEN\s+\d+\s+\d+\s+\S+:(\d+)", machine.inside("ss", "-ltn").stdout)
        assert set(ports) == {"22"}, ports


def test_settings_and_environment_reach_the_runners(server, lab):
    for machine in lab:
        (runner,) = machine.runners()
        environment = pathlib.Path(f"/proc/{runner}/environ").read_bytes().split(b"\0")
        assert b"OMP_NUM_THREADS=7" in environment
        assert b"RUNNER_PREFILL_BATCH=3" in environment


def test_status_shows_each_machine(server):
    for name in NODES:
        state = machines.node_state(server, name)
        assert state["state"] == "up" and state["host"] == name, state
        assert state["version"] and state["platform"].startswith("linux") and state["outdated"] is False


def test_a_log_is_read_where_it_was_written(server):
    # What a runner says comes a moment after the load's answer.
    wait_until("there is something", lambda: "width" in server.call("GET", "/admin/logs?node=mini-b")[2], 10)
    assert server.call("GET", "/admin/logs?node=mini-b")[0] == 200


def test_a_killed_runner_costs_no_answer(server, lab):
    streams = [Stream(server.sdk(), f"Tell me tale {number}.", max_tokens=60) for number in range(6)]
    for stream in streams:
        stream.begun.wait(60)
    (victim,) = lab[1].runners()
    os.kill(victim, signal.SIGKILL)
    for stream in streams:
        stream.end()
    wait_until("it is back", lambda: all(replica["live"] for replica in server.replicas(cluster="lab")))


def test_two_clusters_share_a_machine_and_one_link(server, lab):
    server.put_cluster([lab[0].node(env={"OMP_NUM_THREADS": "7"})], "other")
    status, answer = server.admin("POST", "/clusters/other/load",
                                  {"model": str(MODEL), "alias": "second", "batch": True, "context": 1024})
    assert status == 200 and answer["replicas"][0]["live"], answer
    assert len(lab[0].runners()) == 2
    assert server.admin("POST", "/clusters/other/unload", {})[0] == 200
    assert server.admin("DELETE", "/clusters/other")[0] == 204
    assert len(lab[0].runners()) == 1
    Stream(server.sdk(), "Still there?", max_tokens=4).end()


def test_one_node_for_each_device(server, lab):
    added = server.command("cluster", "add", "gpu", "--node", "mini*2=mini-c")
    assert added.returncode == 0, added.stderr
    status, answer = server.admin("POST", "/clusters/gpu/load", {"model": "synthetic", "batch": True})
    assert status == 200, answer
    assert [replica["node"] for replica in answer["replicas"]] == ["mini-1", "mini-2"]
    seen = set()
    for runner in lab[2].runners():
        environment = pathlib.Path(f"/proc/{runner}/environ").read_bytes().split(b"\0")
        devices = {entry for entry in environment if entry.startswith(b"CUDA_VISIBLE_DEVICES=")}
        # The machine's third runner is the other cluster's, whose node names no device.
        assert bool(devices) == (b"CUDA_DEVICE_ORDER=PCI_BUS_ID" in environment), environment
        seen |= devices
    assert server.admin("POST", "/clusters/gpu/unload", {})[0] == 200
    assert server.admin("DELETE", "/clusters/gpu")[0] == 204
    assert seen == {b"CUDA_VISIBLE_DEVICES=0", b"CUDA_VISIBLE_DEVICES=1"}


def test_another_server_is_refused_by_name_and_disturbs_nobody(start, server, lab):
    other = start(Server, environment=lab.environment)
    other.put_cluster([lab[0].node()], "lab")
    state = wait_until("it is refused", lambda: (lambda s: s["reason"] and s)(machines.node_state(other, "mini-a")))
    assert state["state"] == "down" and "held by the agent" in state["reason"], state
    Stream(server.sdk(), "Hello", max_tokens=4).end()
    assert machines.node_state(server, "mini-a")["state"] == "up"


def test_ctrl_c_ends_runners_agents_and_every_ssh(server, lab):
    runners = [pid for machine in lab for pid in machine.runners()]
    assert len(runners) == 3 and lab.ssh_processes()
    assert server.stop() == 0
    assert not any(map(is_runner, runners))
    assert not lab.ssh_processes()


def test_runners_outlive_a_server_that_was_killed_and_the_next_one_takes_them_over(start, lab, tmp_path):
    environment = lab.environment | {"AGENT_GRACE_S": "30"}
    server = start(Server, folder=tmp_path / "one", environment=environment)
    server.load(nodes=lab.nodes(), cluster="lab", context=1024)
    runners = [machine.runners() for machine in lab]
    server.kill()
    wait_until("no ssh of it is left", lambda: not lab.ssh_processes(), 20)
    again = start(Server, folder=tmp_path / "one", environment=environment)
    wait_until("all are live", lambda: [r["live"] for r in again.replicas(cluster="lab")] == [True] * 3, 20)
    assert [machine.runners() for machine in lab] == runners
    Stream(again.sdk(), "Hello", max_tokens=4).end()
