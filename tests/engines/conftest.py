"""Engines that are not ours: the llama-server of our engine's source and the mlx_lm.server that people install."""

import os
import pathlib
import signal
import urllib.request

import pytest

from checkpoint import make_checkpoint
from support import ALIAS, ROOT, Server, Stream, children_of_all, command_line, wait_until

LLAMA_SERVER = pathlib.Path(os.environ.get("FLOTILLA_LLAMA_SERVER") or ROOT / "build/llama-server/bin/llama-server")
MLX_SERVER = pathlib.Path(os.environ.get("FLOTILLA_MLX_SERVER") or ROOT / "build/engines/bin/mlx_lm.server")
FAKE = pathlib.Path(__file__).with_name("one_at_a_time.py")


def needed(program):
    if not program.exists():
        pytest.skip(f"{program} is missing: ./test engines makes it")
    return program


class Pool(Server):
    """A server with engines in its flotilla.yaml. `engines`: name -> description."""

    def __init__(self, folder, engines, **options):
        config = folder / "flotilla.yaml"
        config.write_text("engines:\n" + "".join(f"  {name}: {text}\n" for name, text in engines.items()))
        super().__init__(folder, "--config", config, **options)

    def engines(self, program):
        """Process ids of the engines below this server's agents whose command has `program`, oldest first."""
        below = children_of_all()
        found, look = [], self.agents()
        while look:
            pid = look.pop()
            look += below.get(pid, [])
            words = command_line(pid)
            # Not the holder, whose command names it too.
            if "--hold-engine" not in words and any(str(program) in word for word in words[:2]):
                found.append(pid)
        return sorted(found)


def an_engine(name, program):
    """A fixture: make(...) starts a server with that engine, make.program is the engine's."""

    @pytest.fixture
    def engine(start):
        def make(**options):
            return start(Pool, {name: f"{{program: {program}}}"}, **options)

        make.program = needed(program)
        return make

    return engine


llama = an_engine("llama-server", LLAMA_SERVER)
mlx = an_engine("mlx", MLX_SERVER)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A model folder with random weights, named as people name theirs."""
    return make_checkpoint(tmp_path_factory.mktemp("models") / "Tiny-Random-Q6")


def streams(server, count, alias=ALIAS, **options):
    return [Stream(server.sdk(), f"Number {number}: tell me about the sea", model=alias, **options)
            for number in range(count)]


def port_of(pid):
    words = command_line(pid)
    return int(words[words.index("--port") + 1])


def page_allowed(pid, origin="http://elsewhere.example"):
    """Which pages the engine lets ask it, when a browser asks for one from `origin`."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port_of(pid)}/v1/chat/completions", method="OPTIONS",
                                   headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return answer.headers.get("Access-Control-Allow-Origin")


def stopped(pids):
    """Stops processes as a hang does; they go on when the test is over."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def wait_gone(pids, seconds=15):
    wait_until(f"{pids} have ended", lambda: not any(command_line(pid) for pid in pids), seconds)
