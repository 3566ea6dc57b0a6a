"""`flotilla model sync`: from one machine to another by ssh, resumed, verified, confined."""

import hashlib
import os
import shutil

import machines
import pytest
from support import MODEL, Server, wait_until

ODD = "-a 'quoted\" $(id) & file\nof two lines.gguf"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = machines.make(tmp_path_factory.mktemp("lab"), ["copy-a", "copy-b"])
    yield lab
    lab.remove()


@pytest.fixture(scope="module")
def server(lab, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"), environment=lab.environment)
    try:
        server.put_cluster([machine.node(models_dir=str(machine.models)) for machine in lab], "lab")
        wait_until("both are up", lambda: {n["state"] for n in machines.overview(server)["nodes"]} == {"up"}, 30)
        yield server
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def empty(lab):
    for machine in lab:
        shutil.rmtree(machine.models)
        machine.models.mkdir()


def sync(server, model, **more):
    """The transfer at its end."""
    status, begun = server.admin("POST", "/models/sync", {"cluster": "lab", "model": model} | more)
    assert status == 202, begun
    assert begun["source"] == "copy-a" and [node["node"] for node in begun["nodes"]] == ["copy-b"], begun
    return ended(server, begun["id"])


def ended(server, transfer):
    path = f"/admin/transfers/{transfer}"
    return wait_until("it has ended", lambda: (lambda t: t["state"] != "running" and t)(server.get_json(path)), 60)


def files(machine):
    return sorted(str(file.relative_to(machine.models)) for file in machine.models.rglob("*") if not file.is_dir())


def test_missing_model_comes_whole_and_the_command_shows_it(server, lab):
    (lab[0].models / "sub").mkdir()
    shutil.copy(MODEL, lab[0].models / "sub" / "m.gguf")
    done = server.command("model", "sync", "lab", "sub/m.gguf")
    assert done.returncode == 0 and "copy-b: there" in done.stdout, done
    assert (lab[1].models / "sub/m.gguf").read_bytes() == MODEL.read_bytes()
    assert files(lab[1]) == ["sub/m.gguf"]
    again = server.command("model", "sync", "lab", "sub/m.gguf")
    assert again.returncode == 0 and "every node has it" in again.stdout
    listed = server.command("model", "list", "lab")
    assert "missing" not in listed.stdout and "sub/m.gguf" in listed.stdout


def test_a_name_that_looks_like_an_option_is_copied_by_the_command_too(server, lab):
    (lab[0].models / "-x y.gguf").write_bytes(b"x" * 1000)
    done = server.command("model", "sync", "lab", "./-x y.gguf")
    assert done.returncode == 0 and "copy-b: there" in done.stdout, done
    assert files(lab[1]) == ["-x y.gguf"]


def test_split_goes_on_from_what_an_earlier_try_left(server, lab):
    parts = [os.urandom(300_000), os.urandom(300_000), os.urandom(100_000)]
    names = [f"big-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    for name, part in zip(names, parts, strict=True):
        (lab[0].models / name).write_bytes(part)
    (lab[1].models / names[0]).write_bytes(parts[0])
    (lab[1].models / f".{names[1]}.part").write_bytes(parts[1][:120_000])
    done = sync(server, names[0], nodes=["copy-b"])
    assert done["state"] == "done", done
    assert done["nodes"][0]["resumed_bytes"] == 420_000 and done["nodes"][0]["total_bytes"] == 700_000
    assert [(lab[1].models / name).read_bytes() for name in names] == parts
    assert files(lab[1]) == names


def test_what_is_another_file_is_replaced_and_a_wrong_part_dropped(server, lab):
    right = os.urandom(200_000)
    (lab[0].models / "m.gguf").write_bytes(right)
    (lab[1].models / "m.gguf").write_bytes(os.urandom(200_000))
    (lab[1].models / ".m.gguf.part").write_bytes(os.urandom(50_000))
    done = sync(server, "m.gguf", nodes=["copy-b"])
    assert done["state"] == "done", done
    assert hashlib.sha256((lab[1].models / "m.gguf").read_bytes()).digest() == hashlib.sha256(right).digest()
    assert files(lab[1]) == ["m.gguf"]


def test_a_first_node_whose_file_is_another_gets_the_others(server, lab):
    right = os.urandom(200_000)
    (lab[0].models / "m.gguf").write_bytes(os.urandom(100_000))
    (lab[1].models / "m.gguf").write_bytes(right)
    order = {"cluster": "lab", "model": "m.gguf", "nodes": ["copy-a"]}
    status, begun = server.admin("POST", "/models/sync", order)
    assert status == 202 and begun["source"] == "copy-b", begun
    assert ended(server, begun["id"])["state"] == "done"
    assert (lab[0].models / "m.gguf").read_bytes() == right == (lab[1].models / "m.gguf").read_bytes()


def test_a_node_that_cannot_say_what_it_has_is_not_taken_to_have_it(server, lab):
    (lab[0].models / "m.gguf").write_bytes(b"x" * 1000)
    lab[1].models.rmdir()
    try:
        done = server.command("model", "sync", "lab", "m.gguf")
        assert done.returncode == 1 and "copy-b: there is no models folder" in done.stderr, done
    finally:
        lab[1].models.mkdir()


def test_a_copy_is_cancelled_and_what_came_is_kept(server, lab):
    with (lab[0].models / "huge.gguf").open("wb") as file:
        file.truncate(3 << 30)
    status, begun = server.admin("POST", "/models/sync", {"cluster": "lab", "model": "huge.gguf"})
    assert status == 202, begun
    path = f"/admin/transfers/{begun['id']}"
    wait_until("some has come", lambda: server.get_json(path)["nodes"][0]["done_bytes"] > 0)
    assert server.admin("POST", "/models/sync", {"cluster": "lab", "model": "huge.gguf"})[0] == 409
    assert server.command("model", "sync", "--cancel", begun["id"]).returncode == 0
    assert ended(server, begun["id"])["state"] == "cancelled"
    assert files(lab[1]) == [".huge.gguf.part"]
    assert 0 < (lab[1].models / ".huge.gguf.part").stat().st_size < 3 << 30
    assert server.admin("DELETE", f"/transfers/{begun['id']}")[0] == 409
    wait_until("its programs have ended", lambda: not copies(lab), 10)


def copies(lab):
    """Pids of what copies there."""
    return [pid for machine in lab for pid in machine.pids() if b"--copy" in cmdline(pid)]


def test_a_copy_is_cancelled_while_what_is_there_is_hashed(server, lab):
    for machine in lab:
        with (machine.models / "huge.gguf").open("wb") as file:
            file.truncate(400 << 30)  # more than anyone hashes within the limits below
    order = {"cluster": "lab", "model": "huge.gguf", "nodes": ["copy-b"]}
    status, begun = server.admin("POST", "/models/sync", order)
    assert status == 202, begun
    wait_until("it is hashed", lambda: any(b"--copy\0hash" in cmdline(pid) for pid in lab[1].pids()), 30)
    assert server.admin("DELETE", f"/transfers/{begun['id']}")[0] == 200
    assert ended(server, begun["id"])["state"] == "cancelled"
    wait_until("its programs have ended", lambda: not copies(lab), 10)


def test_a_copy_is_cancelled_while_a_part_is_hashed(server, lab):
    for machine, name in ((lab[0], "huge.gguf"), (lab[1], ".huge.gguf.part")):
        with (machine.models / name).open("wb") as file:
            file.truncate((400 << 30) - (name != "huge.gguf"))
    status, begun = server.admin("POST", "/models/sync", {"cluster": "lab", "model": "huge.gguf"})
    assert status == 202, begun
    wait_until("it is hashed", lambda: any(b"--copy\0receive" in cmdline(pid) for pid in lab[1].pids()), 30)
    assert server.admin("DELETE", f"/transfers/{begun['id']}")[0] == 200
    assert ended(server, begun["id"])["state"] == "cancelled"
    wait_until("its programs have ended", lambda: not copies(lab), 10)
    assert files(lab[1]) == [".huge.gguf.part"]


def test_between_two_files_of_one_name_the_operator_chooses(server, lab):
    contents = [os.urandom(200_000), os.urandom(200_000)]
    for machine, content in zip(lab, contents, strict=True):
        (machine.models / "m.gguf").write_bytes(content)
    refused = server.command("model", "sync", "lab", "m.gguf")
    assert refused.returncode == 1 and "have different files of that name" in refused.stderr, refused
    assert "--from copy-a" in refused.stderr and "--from copy-b" in refused.stderr, refused
    unnamed = server.command("model", "sync", "lab", "m.gguf", "--from", "copy-b")
    assert unnamed.returncode == 1 and "--node copy-a" in unnamed.stderr, unnamed
    done = server.command("model", "sync", "lab", "m.gguf", "--from", "copy-b", "--node", "copy-a")
    assert done.returncode == 0 and "copy-a: there" in done.stdout, done
    assert (lab[0].models / "m.gguf").read_bytes() == contents[1] == (lab[1].models / "m.gguf").read_bytes()


def test_a_source_that_has_no_such_file_and_an_unknown_cluster_are_told(server, lab):
    (lab[0].models / "m.gguf").write_bytes(b"x" * 1000)
    for source, words in (("copy-b", 'node copy-b has no "m.gguf"'), ("none", 'no node "none"')):
        refused = server.command("model", "sync", "lab", "m.gguf", "--from", source)
        assert refused.returncode == 1 and words in refused.stderr, refused
    listed = server.command("model", "list", "none")
    assert listed.returncode == 1 and 'there is no cluster "none"' in listed.stderr, listed


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_names_never_reach_a_shell(server, lab):
    (lab[0].models / ODD).write_bytes(b"odd" * 1000)
    done = sync(server, ODD)
    assert done["state"] == "done", done
    assert (lab[1].models / ODD).read_bytes() == b"odd" * 1000


def test_nothing_is_written_outside_the_models_folder(server, lab):
    (lab[0].models / "sub").mkdir()
    (lab[0].models / "sub" / "m.gguf").write_bytes(b"x" * 1000)
    outside = lab[1].folder / "outside"
    outside.mkdir(exist_ok=True)
    (lab[1].models / "sub").symlink_to(outside)
    failed = sync(server, "sub/m.gguf")
    assert failed["state"] == "failed" and "leads out of" in failed["nodes"][0]["error"], failed
    assert list(outside.iterdir()) == []
    for model, status in (("../m.gguf", 404), ("/etc/m.gguf", 404), ("none.gguf", 404), ("", 400)):
        got, answer = server.admin("POST", "/models/sync", {"cluster": "lab", "model": model})
        assert got == status, answer
    got, answer = server.admin("POST", "/models/sync", {"cluster": "lab", "model": "sub/m.gguf", "nodes": ["none"]})
    assert got == 404 and '"none"' in answer["detail"], answer


def test_a_disk_that_is_too_small_is_seen_before(server, lab):
    mounted = machines.run("mount", "-t", "tmpfs", "-o", "size=1m", "none", lab[1].models, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be made here: {mounted.stderr.strip()}")
    try:
        (lab[0].models / "m.gguf").write_bytes(b"x" * (5 << 20))
        failed = sync(server, "m.gguf")
        assert "make room in" in failed["nodes"][0]["error"], failed
        assert files(lab[1]) == []
    finally:
        machines.run("umount", lab[1].models)


def test_a_node_that_is_gone_fails_with_its_reason(server, lab):
    (lab[0].models / "m.gguf").write_bytes(b"x" * 1000)
    program = lab[1].bin / "flotilla"
    real = program.readlink()
    program.unlink()
    try:
        failed = sync(server, "m.gguf")
        assert "not installed" in failed["nodes"][0]["error"], failed
    finally:
        program.symlink_to(real)
