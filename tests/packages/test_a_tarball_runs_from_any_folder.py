import os
import pathlib
import re
import subprocess

import pytest

import support
from support import ALIAS, Server, ask

# Whose place is the machine's.
SYSTEM = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libresolv.so")


@pytest.fixture(scope="module")
def unpacked(tarball, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any folder")
    subprocess.run(["tar", "-xzf", tarball, "-C", folder], check=True)
    (inside,) = folder.iterdir()
    assert inside.name.startswith("flotilla-"), inside.name
    return inside


def test_its_libraries_are_its_own(unpacked):
    for program in (unpacked / "bin/flotilla", unpacked / "lib/flotilla/flotilla-x86-64-v4"):
        if not program.exists():
            continue
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        foreign = [line for line in said.splitlines()
                   if str(unpacked) not in line and not any(name in line for name in SYSTEM)]
        assert not foreign and "not found" not in said, foreign


def test_it_serves_a_model_and_the_runner_is_of_the_processors_level(unpacked, start, monkeypatch):
    moved = unpacked.rename(unpacked.parent / "moved here")
    monkeypatch.setattr(support, "BINARY", moved / "bin/flotilla")
    server = start(Server)
    server.load(nodes=1)
    assert ask(server.sdk(), max_tokens=8).usage.completion_tokens > 0
    (runner,) = server.runners()
    flags = set(re.search(r"^flags\s*:(.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    best = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags
    program = moved / ("lib/flotilla/flotilla-x86-64-v4" if best else "bin/flotilla")
    assert os.readlink(f"/proc/{runner}/exe") == str(program)
    assert server.pool(ALIAS)["batch"] is True
    moved.rename(unpacked)
