import pathlib
import shutil

import machines
import pytest
from support import MODEL, Server, Stream, wait_until

NODES = ("box-a", "box-b", "box-c")
pytestmark = pytest.mark.waits


@pytest.fixture
def lab(tmp_path):
    lab = machines.make(tmp_path, NODES[:1])
    yield lab
    lab.remove()


@pytest.fixture
def three(tmp_path):
    lab = machines.make(tmp_path, NODES)
    for machine in lab:
        shutil.copy(MODEL, machine.models / "m.gguf")
    yield lab
    lab.remove()


def down(server, node="box-a"):
    """Its state, once the link is down."""
    return wait_until(f"{node} is down", lambda: (lambda s: s["reason"] and s)(machines.node_state(server, node)), 30)


def declare(lab, start, **changes):
    server = start(Server, environment=lab.environment)
    server.put_cluster([lab[0].node(**changes)], "lab")
    return server


def test_host_key_that_changed(lab, start):
    lab[0].end_sshd()
    lab[0].new_host_key()
    lab[0].start_sshd()
    state = down(declare(lab, start))
    assert state["state"] == "down"
    assert "is another than the one known" in state["reason"] and "flotilla node trust box-a" in state["reason"]


def test_host_key_that_is_not_known(lab, start):
    lab.known_hosts.write_text("")
    reason = down(declare(lab, start))["reason"]
    assert "not known yet" in reason and "flotilla node trust box-a" in reason


def test_key_that_is_not_let_in(lab, start):
    (lab[0].folder / "authorized_keys").write_text("")
    reason = down(declare(lab, start))["reason"]
    assert "Permission denied" in reason and "ssh-copy-id" in reason


def test_user_that_there_is_none_of(lab, start):
    reason = down(declare(lab, start, user="nobody-of-that-name"))["reason"]
    assert "Permission denied" in reason and "nobody-of-that-name" in reason


def test_machine_without_flotilla(lab, start):
    (lab[0].bin / "flotilla").unlink()
    reason = down(declare(lab, start))["reason"]
    assert "not installed" in reason and "flotilla node bootstrap box-a" in reason


def test_a_program_that_may_not_be_run_is_no_matter_of_keys(lab, start):
    place = lab[0].folder / "flotilla"
    place.write_text("not to be run")
    place.chmod(0o644)
    reason = down(declare(lab, start, flotilla_path=str(place)))["reason"]
    assert f"chmod 755 {place}" in reason and "ssh-copy-id" not in reason


def test_flotilla_path_that_is_wrong_and_one_that_is_right(lab, start):
    server = declare(lab, start, flotilla_path="/nowhere/flotilla")
    assert "not installed" in down(server)["reason"]
    place = lab[0].folder / "elsewhere"
    place.symlink_to((lab[0].bin / "flotilla").resolve())
    (lab[0].bin / "flotilla").unlink()
    server.put_cluster([lab[0].node(flotilla_path=str(place))], "lab")
    wait_until("it is up", lambda: machines.node_state(server, "box-a")["state"] == "up", 20)


def test_an_sshd_that_forwards_no_sockets_fails_its_node_alone(three, start):
    for machine, setting in zip(three, ("AllowStreamLocalForwarding no", "DisableForwarding yes")):
        machine.restart_sshd(setting)
    server = start(Server, environment=three.environment)
    server.put_cluster(three.nodes(), "lab")
    status, answer = load(server, "synthetic")
    assert status == 200, answer
    replicas = {replica["node"]: replica for replica in answer["replicas"]}
    assert {name: replica["live"] for name, replica in replicas.items()} == {
        "box-a": False, "box-b": False, "box-c": True}
    for name in ("box-a", "box-b"):
        error = replicas[name]["last_error"]
        assert f"set AllowStreamLocalForwarding yes in the sshd_config of {name}" in error, error
        assert "open failed" in error, error
    for machine in three[:2]:
        machine.restart_sshd()
    wait_until("they heal", lambda: all(r["live"] for r in server.replicas("synthetic", "lab")), 60)


def test_host_that_does_not_exist(lab, start):
    reason = down(declare(lab, start, host="no-such-host.invalid"))["reason"]
    assert "no host" in reason


@pytest.mark.parametrize("change", [
    {"host": "-oProxyCommand=touch /tmp/flotilla-pwned"}, {"host": "root@box-a"}, {"host": "box a"},
    {"host": "box'a"}, {"host": "box\"a"}, {"host": "box\na"}, {"host": "$(touch x)"}, {"host": ""},
    {"user": "-oProxyCommand=x"}, {"user": "a b"}, {"user": "a@b"}, {"user": "a\n"},
    {"flotilla_path": "flotilla"}, {"flotilla_path": "/a b"}, {"flotilla_path": "/a\nb"},
    {"flotilla_path": "/a';touch /tmp/x;'"}, {"port": 0}, {"port": "22; x"}, {"devices": ["0"]},
], ids=repr)
def test_fields_that_ssh_or_a_shell_could_read_otherwise(shared, change):
    node = {"id": "box", "transport": "ssh", "host": "box"} | change
    status, answer = shared.admin("PUT", "/clusters/bad", {"nodes": [node]})
    assert status == 400 and next(iter(change)) in answer["detail"], answer
    assert shared.admin("GET", "/clusters/bad")[0] == 404
    assert not pathlib.Path("/tmp/flotilla-pwned").exists()


def load(server, model, **settings):
    return server.admin("POST", "/clusters/lab/load", {"model": model, "batch": True, "context": 1024} | settings)


def nodes_with_models(lab):
    return [machine.node(models_dir=str(machine.models)) for machine in lab]


def rows(server, model):
    report = server.get_json(f"/admin/clusters/lab/preflight?model={model}")
    return report, {row["node"]: row for row in report["nodes"]}


def test_models_folder_of_each_machine_is_its_own(three, start):
    server = start(Server, environment=three.environment)
    server.put_cluster(nodes_with_models(three), "lab")
    report, row = rows(server, "m.gguf")
    assert report["fits"] and len({row[name]["hash"] for name in NODES}) == 1 and row["box-a"]["hash"]
    assert all(row[name]["replicas_here"] == 3 for name in NODES), "they share this machine's memory"
    status, answer = load(server, "m.gguf")
    assert status == 200 and all(replica["live"] for replica in answer["replicas"]), answer
    assert {Stream(server.sdk(), f"Hi {n}", model="m", max_tokens=8).end().served["node"]
            for n in range(6)} == set(NODES)
    cache = (three[0].folder / "state/flotilla/agent/model-hashes").read_text()
    assert row["box-a"]["hash"] in cache


def test_model_that_one_machine_lacks(three, start):
    (three[1].models / "m.gguf").unlink()
    server = start(Server, environment=three.environment)
    server.put_cluster(nodes_with_models(three), "lab")
    report, row = rows(server, "m.gguf")
    assert not report["fits"] and report["limiting_node"] == "box-b"
    assert not row["box-b"]["model_present"]
    assert row["box-b"]["fix"] == "flotilla model sync lab m.gguf --node box-b: the file of node box-a"
    assert row["box-a"]["fits"] and not row["box-a"]["fix"]
    shown = server.command("preflight", "m.gguf", "--cluster", "lab")
    assert shown.returncode == 1 and f"box-b: {row['box-b']['fix']}" in shown.stdout.splitlines(), shown
    assert "box-b limits" in shown.stdout and "box-c" in shown.stdout, shown
    status, answer = load(server, "m.gguf")
    assert status == 422 and "box-b" in answer["detail"] and "box-a" not in answer["detail"], answer
    status, answer = load(server, "m.gguf", force=True)
    assert status == 200, answer
    assert {r["node"]: r["live"] for r in answer["replicas"]} == {"box-a": True, "box-b": False, "box-c": True}
    shutil.copy(MODEL, three[1].models / "m.gguf")
    wait_until("it heals", lambda: all(r["live"] for r in server.replicas("m", "lab")), 60)


def test_model_of_another_content_on_one_machine(three, start):
    other = bytearray((three[2].models / "m.gguf").read_bytes())
    other[-1] ^= 1
    (three[2].models / "m.gguf").write_bytes(other)
    server = start(Server, environment=three.environment)
    server.put_cluster(nodes_with_models(three), "lab")
    report, row = rows(server, "m.gguf")
    assert not report["fits"] and "SHA-256" in row["box-c"]["differs"], row["box-c"]
    assert not row["box-a"]["differs"] and not row["box-b"]["differs"]
    status, answer = load(server, "m.gguf")
    assert status == 422 and "box-c" in answer["detail"], answer


def test_machine_whose_memory_is_less_decides_and_the_others_serve_without_it(three, start):
    three[1].limit_memory(96 << 20)
    server = start(Server, environment=three.environment)
    server.put_cluster(nodes_with_models(three), "lab")
    report, row = rows(server, "m.gguf")
    assert not report["fits"] and report["limiting_node"] == "box-b", report
    assert row["box-b"]["need_bytes"] > row["box-b"]["free_bytes"] and row["box-b"]["fix"], row["box-b"]
    status, answer = load(server, "m.gguf")
    assert status == 422 and "box-b" in answer["detail"] and "control group" in answer["detail"], answer
    status, answer = load(server, "m.gguf", force=True)
    assert status == 200, answer
    Stream(server.sdk(), "Hello", model="m", max_tokens=8).end()


def test_devices_have_the_memory_that_their_tool_tells(lab, start):
    tool = lab[0].bin / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, big, 98304, 0, 98304, 7, 41, 99.5'\necho '1, tiny, 8, 0, 8, 0, 30, 20'\n")
    tool.chmod(0o755)
    shutil.copy(MODEL, lab[0].models / "m.gguf")
    server = start(Server, environment=lab.environment)
    server.put_cluster([lab[0].node(id=f"gpu-{device}", devices=[device], models_dir=str(lab[0].models))
                        for device in (0, 1)], "lab")
    wait_until("it is up", lambda: machines.node_state(server, "gpu-0")["state"] == "up", 30)
    seen = wait_until("its tool has been asked", lambda: (lambda t: t["gpus"] and t)(
        server.get_json("/admin/nodes/gpu-0/telemetry")), 30)
    assert [(gpu["index"], gpu["name"], gpu["temperature_c"]) for gpu in seen["gpus"]] == [
        (0, "big", 41), (1, "tiny", 30)]
    report, row = rows(server, "m.gguf")
    assert row["gpu-0"]["fits"] and row["gpu-0"]["free_bytes"] == 96 << 30, row
    assert not row["gpu-1"]["fits"] and row["gpu-1"]["free_bytes"] == 8 << 20 and row["gpu-1"]["fix"], row
    assert all(one["on_devices"] and one["replicas_here"] == 1 for one in row.values()), row
    assert report["limiting_node"] == "gpu-1" and not report["fits"]


@pytest.mark.parametrize("model", ["../secret.gguf", "/nowhere/m.gguf", "link.gguf", "a b'\".gguf", "-x.gguf",
                                   "a\nb.gguf", "folder/../../secret.gguf"])
def test_model_paths_stay_in_their_folder_and_are_only_paths(lab, start, model):
    (lab[0].folder / "secret.gguf").write_bytes(b"GGUF")
    (lab[0].models / "link.gguf").symlink_to(lab[0].folder / "secret.gguf")
    server = declare(lab, start, models_dir=str(lab[0].models))
    status, answer = load(server, model, alias="m")
    assert status == 422 and "box-a" in answer["detail"], answer
    listed = server.get_json("/admin/clusters/lab/models")
    assert listed["models"] == []


def test_model_names_with_spaces_and_quotes_are_served(lab, start):
    name = "my model's \"best\".gguf"
    shutil.copy(MODEL, lab[0].models / name)
    server = declare(lab, start, models_dir=str(lab[0].models))
    status, answer = load(server, name, alias="best")
    assert status == 200 and answer["replicas"][0]["live"], answer


def test_models_are_listed_with_the_machine_that_lacks_one(three, start):
    (three[1].models / "m.gguf").unlink()
    shutil.rmtree(three[2].models)
    server = start(Server, environment=three.environment)
    server.put_cluster(nodes_with_models(three), "lab")
    listed = server.command("model", "list")
    assert listed.returncode == 0 and "m.gguf" in listed.stdout and "missing on box-b" in listed.stdout, listed
    assert f"lab box-c: {three[2].models}: No such file" in listed.stdout, listed
