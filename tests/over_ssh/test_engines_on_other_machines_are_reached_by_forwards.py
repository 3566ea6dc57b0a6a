import os
import pathlib
import re
import signal
import sys
import threading

import machines
import pytest
from support import Server, Stream, children_of_all, command_line, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "engines"))
from checkpoint import make_checkpoint  # noqa: E402

FAKE = ROOT / "engines/one_at_a_time.py"
ALIAS = "tiny"


@pytest.fixture
def lab(tmp_path_factory):
    lab = machines.make(tmp_path_factory.mktemp("lab"), ("mini-a", "mini-b"))
    yield lab
    lab.remove()


def engines(machine):
    return sorted(pid for pid in machine.pids() if str(FAKE) in command_line(pid) and
                  "--hold-engine" not in command_line(pid))


def serve(start, lab, tmp_path):
    config = tmp_path / "flotilla.yaml"
    config.write_text(f"engines:\n  single: {{command: [{sys.executable}, {FAKE}, '{{port}}']}}\n")
    return start(Server, "--config", config, environment=lab.environment | {"AGENT_GRACE_S": "60"})


def waiting_engine(machine):
    """The writing end of the pipe that its engine waits for before it starts, once it does."""
    def opened():
        try:
            return os.open(machine.folder / "go", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads it
            return None
    return wait_until(f"the engine of {machine.name} waits", opened, 60)


def let_go(pipe):
    os.write(pipe, b"now\n")
    os.close(pipe)


def test_all_load_at_the_same_time_and_status_tells_each(lab, start, tmp_path):
    for machine in lab:
        os.mkfifo(machine.folder / "go")
    config = tmp_path / "flotilla.yaml"
    script = f'read line < "$HOME/go"; exec {sys.executable} {FAKE} "$1"'
    config.write_text(f"engines:\n  held: {{command: [sh, -c, '{script}', held, '{{port}}']}}\n")
    server = start(Server, "--config", config, environment=lab.environment)
    server.put_cluster(lab.nodes(), "lab")
    order = {"model": str(make_checkpoint(tmp_path / "Tiny-Q6")), "engine": "held"}
    answers = []
    load = threading.Thread(target=lambda: answers.append(server.admin("POST", "/clusters/lab/load", order)))
    load.start()
    pipes = [waiting_engine(machine) for machine in lab]  # both at once: neither has been let go

    def phases():
        (loading,) = server.get_json("/admin/clusters/lab/status")["loading"]
        return {node["node"]: node["phase"] for node in loading["nodes"]}

    assert set(phases()) == {"mini-a", "mini-b"} and "ready" not in phases().values(), phases()
    let_go(pipes[1])
    wait_until("the second serves", lambda: phases()["mini-b"] == "ready", 60)
    assert phases()["mini-a"] != "ready" and not answers, answers
    assert Stream(server.sdk(), "Hello", model=ALIAS).end().served["node"] == "mini-b"
    let_go(pipes[0])
    load.join(60)
    status, answer = answers[0]
    assert status == 200 and all(replica["live"] for replica in answer["replicas"]), answer


def test_an_sshd_that_forwards_no_ports_fails_its_node_alone(lab, start, tmp_path):
    lab[0].restart_sshd("AllowTcpForwarding no")
    server = serve(start, lab, tmp_path)
    server.put_cluster(lab.nodes(), "lab")
    order = {"model": str(make_checkpoint(tmp_path / "Tiny-Q6")), "engine": "single"}
    status, answer = server.admin("POST", "/clusters/lab/load", order)
    assert status == 200, answer
    replicas = {replica["node"]: replica for replica in answer["replicas"]}
    assert replicas["mini-b"]["live"] and not replicas["mini-a"]["live"], answer
    error = replicas["mini-a"]["last_error"]
    assert "set AllowTcpForwarding yes in the sshd_config of mini-a" in error, error
    assert "administratively prohibited" in error, error


def test_they_serve_survive_a_link_that_breaks_and_end_with_their_agent(lab, start, tmp_path):
    folder = make_checkpoint(tmp_path / "Tiny-Q6")
    server = serve(start, lab, tmp_path)
    answer = server.load(nodes=lab.nodes(), cluster="lab", model=str(folder), engine="single", batch=False)
    assert answer["alias"] == ALIAS and all(replica["engine"] == "single" for replica in answer["replicas"])
    served = {Stream(server.sdk(), f"Number {number}", model=ALIAS).end().served["node"] for number in range(4)}
    assert served == {"mini-a", "mini-b"}
    for machine in lab:
        listening = re.findall(r"LISTEN\s+\d+\s+\d+\s+(\S+):(\d+)", machine.inside("ss", "-ltn").stdout)
        assert {address for address, port in listening if port != "22"} == {"127.0.0.1"}, listening

    # The agent keeps it, and the next link takes it as it is.
    before = engines(lab[0])
    lab[0].end_sshd()
    wait_until("the link is seen to be down", lambda: not server.replicas(ALIAS, "lab")[0]["live"], 30)
    lab[0].start_sshd()
    wait_until("it is back", lambda: server.replicas(ALIAS, "lab")[0]["live"], 60)
    assert engines(lab[0]) == before
    assert Stream(server.sdk(), "Hello", model=ALIAS).end().text == "aye"

    agents = [pid for pid in lab[1].pids() if command_line(pid)[1:3] == ["agent", "--hold"]]
    gone = engines(lab[1])
    below = children_of_all()
    assert gone and agents and set(below[agents[0]])
    os.kill(agents[0], signal.SIGKILL)
    wait_until("its engine has ended", lambda: not set(gone) & set(engines(lab[1])), 15)
