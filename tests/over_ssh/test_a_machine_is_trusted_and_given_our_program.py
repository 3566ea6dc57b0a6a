import machines
import pytest
from support import BINARY, Server, Stream, wait_until

pytestmark = pytest.mark.waits


@pytest.fixture
def lab(tmp_path):
    lab = machines.make(tmp_path, ["rack-a", "rack-b"])
    yield lab
    lab.remove()


def declare(lab, start, **changes):
    server = start(Server, environment=lab.environment)
    server.put_cluster(lab.nodes(**changes), "lab")
    return server


def wait_state(server, node, state):
    return wait_until(f"{node} is {state}", lambda: (lambda s: s["state"] == state and s)(
        machines.node_state(server, node)), 30)


def fingerprint(machine):
    return machines.run("ssh-keygen", "-lf", machine.folder / "host_key.pub").stdout.split()[1]


def test_unknown_host_key_is_shown_and_stored_only_when_told_so(lab, start):
    lab.known_hosts.write_text("")
    server = declare(lab, start)
    wait_state(server, "rack-a", "down")
    shown = server.command("node", "trust", "rack-a")
    assert shown.returncode == 1 and fingerprint(lab[0]) in shown.stdout, shown
    assert lab.known_hosts.read_text() == ""
    wrong = server.command("node", "trust", "rack-a", "--fingerprint", "SHA256:AAAA")
    assert wrong.returncode == 1 and "nothing was stored" in wrong.stderr, wrong
    assert server.command("node", "trust", "rack-a", "--fingerprint", fingerprint(lab[0])).returncode == 0
    assert lab[0].host_key in lab.known_hosts.read_text()
    wait_state(server, "rack-a", "up")
    again = server.command("node", "trust", "rack-a")
    assert again.returncode == 0 and "that is the one" in again.stdout


def test_a_key_gets_a_line_of_its_own_in_a_file_whose_last_has_no_end(lab, start):
    other = f"{lab[1].address} {lab[1].host_key}"
    lab.known_hosts.write_text(other)
    server = declare(lab, start)
    wait_state(server, "rack-b", "up")
    assert server.command("node", "trust", "rack-a", "--yes").returncode == 0
    assert lab.known_hosts.read_text().splitlines() == [other, f"{lab[0].address} {lab[0].host_key}"]
    wait_state(server, "rack-a", "up")


def test_changed_host_key_takes_the_old_ones_place(lab, start):
    old = lab[0].host_key
    lab[0].end_sshd()
    lab[0].new_host_key()
    lab[0].start_sshd()
    server = declare(lab, start)
    wait_state(server, "rack-a", "down")
    stored = server.command("node", "trust", "rack-a", "--yes")
    assert stored.returncode == 0 and "has another one" in stored.stdout, stored
    known = lab.known_hosts.read_text()
    assert lab[0].host_key in known and old not in known and lab[1].host_key in known
    wait_state(server, "rack-a", "up")


def test_unknown_node_and_one_that_is_not_reached_by_ssh(shared):
    assert "no cluster has a node" in shared.command("node", "trust", "nobody").stderr
    assert "not by ssh" in shared.command("node", "bootstrap", "local-1").stderr
    assert shared.command("node", "bootstrap").returncode == 2


def test_machine_without_flotilla_gets_ours_and_serves(lab, start):
    place = lab[0].folder / "opt/flotilla"
    (lab[0].bin / "flotilla").unlink()
    server = declare(lab, start, flotilla_path=str(place))
    wait_state(server, "rack-a", "down")
    done = server.command("node", "bootstrap", "rack-a")
    assert done.returncode == 0 and str(place) in done.stdout and done.stdout.rstrip().endswith("up"), done
    assert place.stat().st_mode & 0o777 == 0o755
    wait_state(server, "rack-a", "up")


def test_a_platform_of_which_there_is_no_program_is_told_with_what_would_do(lab, start):
    uname = lab[0].bin / "uname"
    uname.write_text('#!/bin/sh\ncase "$1" in -s) echo Darwin;; *) echo arm64;; esac\n')
    uname.chmod(0o755)
    before = (lab[0].bin / "flotilla").readlink()
    server = declare(lab, start)
    refused = server.command("node", "bootstrap", "rack-a")
    assert refused.returncode == 1 and "node rack-a is macos-arm64" in refused.stderr, refused
    assert "build it on that machine" in refused.stderr and "flotilla-macos-arm64" in refused.stderr, refused
    assert (lab[0].bin / "flotilla").readlink() == before, "nothing was copied"


def test_runners_of_another_version_that_a_package_left_beside_it_are_not_taken(lab, start):
    place = lab[0].folder / "opt/bin/flotilla"
    beside = lab[0].folder / "opt/lib/flotilla"
    beside.mkdir(parents=True)
    ours = machines.run(BINARY, "version").stdout.strip()
    for level, version in ((4, "flotilla 0.0.1"), (5, ours)):
        program = beside / f"flotilla-x86-64-v{level}"
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
    server = declare(lab, start, flotilla_path=str(place))
    done = server.command("node", "bootstrap", "rack-a")
    assert done.returncode == 0 and str(place) in done.stdout, done
    assert [file.name for file in beside.iterdir()] == ["flotilla-x86-64-v5"]


def test_rolling_bootstrap_fails_no_request(lab, start):
    server = declare(lab, start)
    server.load(cluster="lab", context=1024)
    before = [machine.runners() for machine in lab]
    streams = [Stream(server.sdk(), f"Tell me story {n} about the sea.", max_tokens=60) for n in range(6)]
    for stream in streams:
        stream.begun.wait(60)
    done = server.command("node", "bootstrap", "--rolling", "lab", timeout=170)
    assert done.returncode == 0 and done.stdout.count("agent restarted, up") == 2, done
    for stream in streams:
        stream.end()
    for machine, runners in zip(lab, before):
        assert not (machine.bin / "flotilla").is_symlink() and machine.runners() != runners
    assert all(replica["state"] == "ready" for replica in server.replicas(cluster="lab"))
    Stream(server.sdk(), "Hello", max_tokens=4).end()


def test_a_replica_that_was_drained_by_hand_stays_so_over_a_bootstrap(lab, start):
    server = declare(lab, start)
    server.load(cluster="lab", model="synthetic", alias="m")
    assert server.admin("POST", "/clusters/lab/pools/m/replicas/rack-a/drain", {})[0] == 200
    before = lab[0].runners()
    assert server.command("node", "bootstrap", "rack-a").returncode == 0
    assert lab[0].runners() != before
    state = wait_until("it is there again", lambda: (lambda r: r["live"] and r)(
        {replica["node"]: replica for replica in server.replicas("m", "lab")}["rack-a"]), 30)
    assert state["state"] == "draining", state


def test_other_version_of_the_same_protocol_serves_and_is_shown_as_outdated(lab, start):
    lab[0].install_other_version("0.0.7", 1)
    server = declare(lab, start)
    state = wait_state(server, "rack-a", "up")
    assert state["version"] == "0.0.7" and state["outdated"], state
    status, answer = server.admin("POST", "/clusters/lab/load", {"model": "synthetic", "batch": True})
    assert status == 200 and all(replica["live"] for replica in answer["replicas"]), answer
    doctor = server.command("doctor", "lab")
    assert doctor.returncode == 0 and "flotilla node bootstrap rack-a" in doctor.stdout, doctor


def test_other_protocol_is_down_and_heals_after_the_copy(lab, start):
    lab[0].install_other_version("0.9.0", 2)
    server = declare(lab, start)
    state = wait_state(server, "rack-a", "down (version)")
    assert "speaks protocol 2" in state["reason"] and "flotilla node bootstrap rack-a" in state["reason"]
    assert wait_state(server, "rack-b", "up")
    doctor = server.command("doctor", "lab")
    assert doctor.returncode == 1 and "rack-a" in doctor.stdout, doctor
    done = server.command("node", "bootstrap", "rack-a")
    assert done.returncode == 0, done
    wait_state(server, "rack-a", "up")


def test_a_holder_of_another_protocol_is_told_so_and_ends_when_its_program_is_replaced(lab, start):
    before = declare(lab, start)
    wait_state(before, "rack-a", "up")
    lab[0].agent_socket = lab[0].find_agent_socket()
    assert before.stop() == 0
    wait_until("its agent has ended", lambda: not lab[0].find_agent_socket(), 20)
    holder = lab[0].hold_with_other_protocol(0)
    server = declare(lab, start)
    state = wait_state(server, "rack-a", "down (version)")
    assert "(version 0.0.0) speaks protocol 0" in state["reason"], state
    assert "flotilla node bootstrap rack-a" in state["reason"], state
    wait_state(server, "rack-b", "up")
    status, answer = server.admin("POST", "/clusters/lab/load", {"model": "synthetic", "batch": True})
    assert status == 200, answer
    assert {r["node"]: r["live"] for r in answer["replicas"]} == {"rack-a": False, "rack-b": True}
    assert holder.poll() is None, "nobody ends what it holds unasked"
    done = server.command("node", "bootstrap", "rack-a")
    assert done.returncode == 0, done
    assert holder.wait(10) == 0
    wait_until("its replica comes up", lambda: all(r["live"] for r in server.replicas("synthetic", "lab")), 60)


def test_a_node_is_tested_before_it_is_declared(lab, start):
    server = start(Server, environment=lab.environment)
    status, answer = server.admin("POST", "/nodes/test", lab[0].node())
    assert status == 200 and answer["reachable"] and answer["version"] and not answer["outdated"], answer
    status, answer = server.admin("POST", "/nodes/test", lab[0].node(user="nobody-of-that-name"))
    assert status == 422 and "Permission denied" in answer["detail"] and "ssh-copy-id" in answer["detail"]
    status, answer = server.admin("POST", "/nodes/test", lab[0].node(host="-oProxyCommand=x"))
    assert status == 400, answer


def test_telemetry_tells_of_the_machine_and_its_runners(lab, start):
    server = declare(lab, start)
    server.load(cluster="lab", context=1024)
    seen = wait_until("numbers", lambda: (lambda t: t["replicas"] and t)(
        server.get_json("/admin/nodes/rack-b/telemetry")), 20)
    assert seen["memory_total_bytes"] > seen["memory_available_bytes"] > 0 and seen["cores"] > 0
    assert seen["cpu_load"] >= 0 and seen["round_trip_ms"] >= 0
    assert seen["replicas"][0]["rss_bytes"] > 1 << 20 and seen["replicas"][0]["node"] == "rack-b"
    assert [node["node"] for node in server.get_json("/admin/nodes")["nodes"]] == ["rack-a", "rack-b"]
    assert server.admin("GET", "/nodes/nobody/telemetry")[0] == 404
