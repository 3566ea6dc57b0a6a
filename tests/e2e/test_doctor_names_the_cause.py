"""flotilla doctor, with troubles that are made. (tests/over_ssh has those of other machines;
src/gateway/diagnosis_test.cpp each finding by its facts, also what cannot be made here: a Mac's memory for Metal, a
disk that stands still.)"""

import http.server
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading

import pytest

from certificates import Authority
from other_engine import Answers, Engine
from support import MODEL, Server, Stream, run_command, wait_until


def doctor(server, *arguments):
    return server.command("doctor", *arguments)


def seen(server, words):
    """What doctor says once it says these words."""
    def found():
        done = doctor(server)
        return done if words in done.stdout else None
    return wait_until(f"doctor says: {words}", found)


def test_a_server_without_trouble(shared):
    done = doctor(shared)
    assert done.returncode == 0, done.stdout + done.stderr
    for check in ("link", "version", "memory", "replica of", "pool ", "model ", "state", "open files"):
        assert check in done.stdout, check
    assert "failure" not in done.stdout
    assert doctor(shared, "nobody").returncode == 1 and "no cluster" in doctor(shared, "nobody").stderr


def test_nothing_declared_and_nothing_loaded(start):
    server = start(Server)
    done = doctor(server)
    assert done.returncode == 0 and "no clusters; add one with: flotilla cluster add" in done.stdout, done
    server.put_cluster([{"id": "far", "transport": "http", "url": "http://127.0.0.1:9/v1"}], "lab")
    assert "flotilla load lab MODEL.gguf --batch" in doctor(server).stdout
    # A server of its own that does not answer.
    server.admin("POST", "/clusters/lab/load", {"model": "m", "alias": "m", "wait": False})
    assert seen(server, "start that server").returncode == 1


def test_a_replica_that_crashes_again_and_again(start):
    server = start(Server)
    server.load(nodes=1, model="synthetic", alias="m")
    for times in range(1, 4):
        (runner,) = wait_until("it runs", lambda: server.runners() if server.replicas("m")[0]["live"] else None)
        os.kill(runner, signal.SIGSEGV)
        wait_until("it is back", lambda: server.replicas("m")[0]["restarts"] == times and
                   server.replicas("m")[0]["live"])
    done = doctor(server)
    assert "came back 3 times" in done.stdout and "SIGSEGV" in done.stdout, done.stdout
    assert "/admin/logs?node=local-1&replica=m" in done.stdout


def test_nobody_at_that_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        done = run_command("doctor", "--server", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 1 and "start one with `flotilla serve`" in done.stderr, done.stderr


def test_another_program_at_that_address():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as other:
        other.RequestHandlerClass.log_message = lambda *_: None
        threading.Thread(target=other.serve_forever, daemon=True).start()
        done = run_command("doctor", "--server", f"http://127.0.0.1:{other.server_port}")
        other.shutdown()
    assert done.returncode == 1 and "may be no flotilla server: is the port right?" in done.stderr, done.stderr


def test_no_token_and_the_wrong_one(start, tmp_path):
    server = start(Server, token="the-right-token")
    assert doctor(server).returncode == 0
    done = run_command("doctor", "--server", server.url)
    assert done.returncode == 1 and "the admin token is needed" in done.stderr, done.stderr
    wrong = tmp_path / "wrong"
    wrong.write_text("the-wrong-token\n")
    done = run_command("doctor", "--server", server.url, "--admin-token-file", wrong)
    assert done.returncode == 1 and "the admin token is wrong; it is in the server's" in done.stderr, done.stderr


def test_tls_where_there_is_none(shared):
    done = run_command("doctor", "--server", shared.url.replace("http:", "https:"))
    assert done.returncode == 1 and f"speaks no TLS: --server {shared.url}" in done.stderr, done.stderr


def test_plain_where_there_is_tls_and_an_unknown_authority(start, tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("name")
    server = start(Server, "--tls-cert", certificate, "--tls-key", key, tls=authority.context())
    done = run_command("doctor", "--server", server.url.replace("https:", "http:"))
    assert done.returncode == 1 and "this port speaks TLS; use https:// to reach it" in done.stderr, done.stderr
    done = run_command("doctor", "--server", server.url)
    assert done.returncode == 1 and "of an authority that this machine does not know" in done.stderr, done.stderr


def test_a_model_that_vanished_and_a_replica_that_does_not_come_up(start, tmp_path):
    model = tmp_path / "gone.gguf"
    shutil.copy(MODEL, model)
    server = start(Server)
    server.load(nodes=1, model=str(model), alias="m", context=512)
    model.unlink()
    (runner,) = server.runners()
    os.kill(runner, signal.SIGKILL)
    done = seen(server, "it does not come up")
    assert done.returncode == 1 and "no replica serves" in done.stdout, done.stdout
    assert f"model {model}" in done.stdout, done.stdout
    assert "put the model on every node, at the same path" in done.stdout, done.stdout


def test_keys_that_have_expired(start):
    server = start(Server, token="the-token")
    made = [server.admin("POST", "/keys", {"name": name})[1] for name in ("ann", "ben")]
    for key, code, words in zip(made, (0, 1), ("1 of 2 API keys have expired", "every API key has expired")):
        status, answer = server.admin("PUT", f"/keys/{key['id']}", {"name": key["name"], "expires_unix_s": 1})
        assert status == 200, answer
        done = doctor(server)
        assert done.returncode == code and words in done.stdout, done.stdout
    assert "flotilla keys add NAME" in done.stdout, done.stdout


def test_too_few_files_for_many_streams(start):
    server = start(Server)
    _, most = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (1024, most))
    done = doctor(server)
    assert "1024 files may be open at once" in done.stdout and "ulimit -n 65536" in done.stdout, done.stdout


@pytest.fixture
def crowded(start):
    """crowded(BATCH, COUNT): a slow pool, and so many requests for it."""
    def make(batch, count):
        server = start(Server, environment={"FLOTILLA_SYNTHETIC_STEP_US": "200000", "DRAIN_S": "1", "QUEUE_MAX": "10"})
        server.load(nodes=1, model="synthetic", alias="m", batch=batch)
        client = server.sdk()
        for number in range(count):
            Stream(client, f"Story {number}", model="m", max_tokens=1000, extra_body={"ignore_eos": True})
        return server
    return make


def test_a_queue_that_is_almost_full(crowded):
    server = crowded(True, 20)  # a replica has 8 + 2 places
    done = seen(server, "of 10 places to wait are taken")
    assert done.returncode == 0 and "add a node, or give keys a max_in_flight" in done.stdout, done.stdout


def test_requests_that_wait_because_nothing_is_batched(crowded):
    server = crowded(False, 5)
    done = seen(server, "each replica runs one at a time")
    assert "flotilla reload local m --batch" in done.stdout, done.stdout


class OneAtATime(Answers):
    """Has one position for all that it computes."""

    def answer(self, body):
        if not self.server.busy.acquire(blocking=False):
            return self.whole({"error": "arange(): incompatible function arguments"}, 404)
        try:
            threading.Event().wait(0.3)
        finally:
            self.server.busy.release()
        return self.stream(["aye"])


def test_a_model_that_cannot_be_batched(start):
    with Engine(OneAtATime) as engine:
        engine.busy = threading.Lock()
        server = start(Server)
        server.load(nodes=[{"id": "far", "transport": "http", "url": engine.url}], model="m", alias="m")
        done = doctor(server)
        assert done.returncode == 0 and "runs one request at a time" in done.stdout, done.stdout
        assert "arange()" in done.stdout and "take a model whose cache can be batched" in done.stdout, done.stdout


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(MIB): a folder with a file system of its own."""
    mounted = []

    def make(mib):
        folder = tmp_path / "disk"
        folder.mkdir()
        if os.geteuid() != 0:
            pytest.skip("a file system of its own is mounted by root")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", folder], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


def test_a_disk_without_room_for_the_state(small_disk, start):
    server = start(Server, folder=small_disk(64))
    done = doctor(server)
    assert done.returncode == 1 and f"are free in {server.state}" in done.stdout, done.stdout
    assert "make room there: what is declared cannot be written" in done.stdout, done.stdout


def test_a_disk_that_models_almost_fill(small_disk, start):
    model = small_disk(300) / "m.gguf"
    shutil.copy(MODEL, model)
    server = start(Server)
    server.load(nodes=1, model=str(model), alias="m", context=512)
    done = doctor(server)
    assert done.returncode == 0 and "make room where the models are" in done.stdout, done.stdout
