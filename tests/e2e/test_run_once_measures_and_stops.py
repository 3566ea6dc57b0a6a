import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from support import ALIAS, BINARY, MODEL, ROOT, Stream, Talks, wait_until

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


class Run(Talks):
    """`./run` with a terminal's Ctrl-C but without a terminal, from when it has said all."""

    def __init__(self, port, log, *arguments):
        self.url = f"http://127.0.0.1:{port}"
        began = time.monotonic()
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [ROOT / "run", "--port", str(port), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        try:
            wait_until("it says all", lambda: "Ctrl-C stops" in log.read_text() or self.process.poll() is not None, 120)
            self.seconds, self.said = time.monotonic() - began, log.read_text()
            assert self.process.poll() is None, self.said
        except BaseException:
            self.process.kill()
            raise

    def ctrl_c(self):
        """The exit code."""
        os.kill(self.process.pid, signal.SIGINT)
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()


def test_ctrl_c_ends_it_with_0_and_a_second_start_takes_other_options_within_seconds(port, tmp_path):
    run = Run(port, tmp_path / "first.log", "--nodes", "1")
    try:
        for line in (f"endpoint   {run.url}/v1   (model {ALIAS})", f"dashboard  {run.url}/",
                     f"curl {run.url}/v1/chat/completions"):
            assert line in run.said, run.said
        assert re.search(r"^local-1: \w+ \([\d.]+ \w+ of [1-9]", run.said, re.M), "its load in bytes: " + run.said
        stream = Stream(run.sdk(), "A long story", max_tokens=200, extra_body={"ignore_eos": True})
        assert stream.begun.wait(60)
    finally:
        ended = run.ctrl_c()
    assert ended == 0 and stream.end().usage.completion_tokens == 200

    model = shutil.copy(MODEL, tmp_path / "other-model.gguf")
    run = Run(port, tmp_path / "second.log", "--no-batch", "--model", model)
    try:
        for word in ("installing", "fetch:", "building"):
            assert word not in run.said, run.said
        assert run.seconds < 30
        assert "\x1b" not in run.said, "no bars where nobody looks at a terminal"
        (pool,) = run.get_json("/admin/clusters/local/status")["pools"]
        assert (pool["alias"], pool["batch"], pool["replicas_live"]) == ("other-model", False, 2), pool
        # Another one there neither starts nor touches what this one serves.
        third = subprocess.run([ROOT / "run", "--port", str(port)], text=True, capture_output=True,
                               stdin=subprocess.DEVNULL, timeout=60, check=False)
        assert third.returncode == 1 and f"--port {port}: another flotilla serves there" in third.stderr, third
        (same,) = run.get_json("/admin/clusters/local/status")["pools"]
        assert (same["alias"], same["generation"]) == ("other-model", pool["generation"])
    finally:
        ended = run.ctrl_c()
    assert ended == 0


@pytest.mark.parametrize("arguments, named", [
    (["--port", "x"], "--port x"), (["--nodes", "0"], "--nodes 0"), (["--model", "gone.gguf"], "gone.gguf"),
    (["--colour"], "--colour"), (["--port"], "--port"),
])
def test_wrong_usage_is_2(arguments, named):
    done = subprocess.run([ROOT / "run", *arguments], text=True, capture_output=True, timeout=20, check=False)
    assert done.returncode == 2 and named in done.stderr
