"""Each trouble is made, on a machine that ssh reaches: `flotilla doctor` names its cause and what would do."""

import shutil

import machines
import pytest
from support import MODEL, Server, wait_until

NODES = ("sick-a", "sick-b")
pytestmark = pytest.mark.waits


@pytest.fixture
def lab(tmp_path):
    lab = machines.make(tmp_path, NODES)
    yield lab
    lab.remove()


def declare(lab, start, **changes):
    """A server with the first machine as its only node."""
    server = start(Server, environment=lab.environment)
    server.put_cluster([lab[0].node(**changes)], "lab")
    return server


def declare_with_models(lab, start):
    for machine in lab:
        shutil.copy(MODEL, machine.models / "m.gguf")
    server = start(Server, environment=lab.environment)
    server.put_cluster([machine.node(models_dir=str(machine.models)) for machine in lab], "lab")
    return server


def load(server, model):
    """Whatever preflight says of it."""
    settings = {"model": model, "alias": "m", "batch": True, "context": 512, "force": True}
    status, answer = server.admin("POST", "/clusters/lab/load", settings)
    assert status == 200, answer


def expect(server, code, row, *told):
    """`row`: words of one line of the table; `told`: what is said anywhere, the remedy among it."""
    said = []

    def found():
        done = server.command("doctor", "lab")
        said[:] = [done.stdout + done.stderr]
        lines = done.stdout.splitlines()
        return (done.returncode == code and any(all(word in line for word in row) for line in lines) and
                all(words in done.stdout for words in told))

    try:
        wait_until(f"{row} and {told}", found, 40)
    except AssertionError as error:
        raise AssertionError(said[0]) from error


def expect_link(server, *told):
    expect(server, 1, ("sick-a", "link", "failure"), *told)


def test_a_host_key_that_is_not_known(lab, start):
    lab.known_hosts.write_text("")
    expect_link(declare(lab, start), "is not known yet", "flotilla node trust sick-a")


def test_a_host_key_that_changed(lab, start):
    lab[0].end_sshd()
    lab[0].new_host_key()
    lab[0].start_sshd()
    expect_link(declare(lab, start), "is another than the one known", "flotilla node trust sick-a")


def test_a_machine_that_takes_no_key_of_ours(lab, start):
    (lab[0].folder / "authorized_keys").write_text("")
    expect_link(declare(lab, start), "takes none of this user's keys", "ssh-copy-id")


def test_a_host_that_does_not_exist(lab, start):
    expect_link(declare(lab, start, host="no-such-host.invalid"), "there is no host", "correct the node's host")


def test_a_machine_without_sshd(lab, start):
    lab[0].end_sshd()
    expect_link(declare(lab, start), "no sshd answers", "turn on sshd there")


def test_a_machine_that_is_off(lab, start):
    lab[0].cut()
    expect_link(declare(lab, start), "does not answer", "off, asleep or out of reach")


def test_a_machine_without_flotilla(lab, start):
    (lab[0].bin / "flotilla").unlink()
    expect_link(declare(lab, start), "flotilla is not installed there", "flotilla node bootstrap sick-a")


def test_a_flotilla_of_another_platform(lab, start):
    program = lab[0].bin / "flotilla"
    with program.open("rb") as real:
        head = bytearray(real.read(1 << 16))
    head[18] = 0xB7 if head[18] != 0xB7 else 0x3E  # the processor in its ELF header
    program.unlink()
    program.write_bytes(head)
    program.chmod(0o755)
    expect_link(declare(lab, start), "cannot run on that machine", "install one of its platform")


def test_a_flotilla_of_another_version(lab, start):
    lab[0].install_other_version("0.0.7", 1)
    server = declare(lab, start)
    load(server, "synthetic")
    expect(server, 0, ("sick-a", "version", "warning", "0.0.7"), "flotilla node bootstrap sick-a")


def test_a_machine_that_another_server_has(lab, start):
    first = declare(lab, start)
    wait_until("it is up", lambda: machines.node_state(first, "sick-a")["state"] == "up", 30)
    expect_link(declare(lab, start), "held by the agent", "end that server, or take this node out of one of the two")


def test_a_slow_link(lab, start):
    lab.put_proxy(lab[0], delay=0.2, jitter=0.0)
    server = declare(lab, start)
    load(server, "synthetic")
    expect(server, 0, ("sick-a", "link", "warning", " ms"), "each token waits for the network")


def test_a_model_that_one_machine_lacks(lab, start):
    server = declare_with_models(lab, start)
    (lab[1].models / "m.gguf").unlink()
    load(server, "m.gguf")
    expect(server, 1, ("sick-b", "model m.gguf", "failure", "m.gguf"),
           "flotilla model sync lab m.gguf --node sick-b: the file of node sick-a")


def test_a_model_that_is_another_file_on_one_machine(lab, start):
    server = declare_with_models(lab, start)
    other = bytearray((lab[1].models / "m.gguf").read_bytes())
    other[-1] ^= 1
    (lab[1].models / "m.gguf").write_bytes(other)
    load(server, "m.gguf")
    expect(server, 1, ("model m.gguf", "failure", "SHA-256"), "flotilla model sync lab m.gguf")


def test_a_machine_with_too_little_memory(lab, start):
    lab[1].limit_memory(80 << 20)
    server = declare_with_models(lab, start)
    load(server, "m.gguf")
    expect(server, 1, ("sick-b", "replica of m", "memory"), "smaller context or batch_size")


def test_an_sshd_that_forwards_nothing(lab, start):
    lab[0].restart_sshd("AllowStreamLocalForwarding no")
    server = start(Server, environment=lab.environment)
    server.put_cluster(lab.nodes(), "lab")
    load(server, "synthetic")
    expect(server, 1, ("sick-a", "replica of m", "failure", "it does not come up"),
           "set AllowStreamLocalForwarding yes in the sshd_config of sick-a")
