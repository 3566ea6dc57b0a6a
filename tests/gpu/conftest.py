"""A runner whose layers are on a GPU. ./test gpu builds one for the GPU that is here; else all is skipped."""

import os
import shutil
import subprocess

import pytest

from support import MODEL, Runner

LAYERS = os.environ.get("FLOTILLA_GPU_LAYERS")


@pytest.fixture(autouse=True)
def gpu():
    if not LAYERS:
        pytest.skip("no program for a GPU of this machine: ./test gpu builds one where there is one")


@pytest.fixture
def runner(start):
    """support.Runner adds --gpu-layers."""
    return start(Runner, "--model", MODEL, "--width", "8", "--context", "2048")


@pytest.fixture
def nvidia():
    """Process id -> MiB of a device's memory, by NVIDIA's own tool."""
    if not shutil.which("nvidia-smi"):
        pytest.skip("there is no nvidia-smi here")

    def ask():
        said = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=True).stdout
        rows = [line.split(",") for line in said.splitlines() if line.strip()]
        return {int(pid): used.strip() for pid, used in rows}

    return ask
