import os
import signal
import socket
import subprocess

import pytest

from support import BINARY, ROOT, wait_until

pytestmark = pytest.mark.skipif(BINARY != ROOT / "build/release/flotilla", reason="./run builds and runs build/release")


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_table_is_printed_and_the_exit_code_is_0(port):
    done = subprocess.run([ROOT / "run", "--once", "--nodes", "1", "--port", str(port)], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 of 20" in done.stdout
    assert "1 of 1 replicas ready" in done.stdout


def test_ctrl_c_ends_it_with_0(port, tmp_path):
    with (tmp_path / "run.log").open("wb") as log:
        run = subprocess.Popen([ROOT / "run", "--nodes", "1", "--port", str(port)], stdin=subprocess.DEVNULL,
                               stdout=log, stderr=log, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    text = (tmp_path / "run.log").read_text
    try:
        wait_until("the curl is printed", lambda: "Ctrl-C stops" in text() or run.poll() is not None, 120)
        assert "curl http" in text() and "dashboard" in text()
        os.kill(run.pid, signal.SIGINT)
        assert run.wait(30) == 0, text()
    finally:
        run.kill()


@pytest.mark.parametrize("arguments, named", [
    (["--port", "x"], "--port x"), (["--nodes", "0"], "--nodes 0"), (["--model", "gone.gguf"], "gone.gguf"),
    (["--colour"], "--colour"), (["--port"], "--port"),
])
def test_wrong_usage_is_2(arguments, named):
    done = subprocess.run([ROOT / "run", *arguments], text=True, capture_output=True, timeout=20, check=False)
    assert done.returncode == 2 and named in done.stderr
