"""The packages that tools/package built, and a machine to install one on."""

import os
import shutil

import pytest

from machine import BUILT, Machine


def only(pattern):
    found = sorted(BUILT.glob(pattern))
    assert len(found) == 1, f"{BUILT} has {len(found)} of {pattern}: run tools/package"
    return found[0]


@pytest.fixture(scope="session")
def tarball():
    return only("flotilla-*.tar.gz")


@pytest.fixture(scope="session")
def deb():
    return only("flotilla_*.deb")


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a machine to install on is made by root with unshare")
    made = Machine(tmp_path_factory.mktemp("machine"))
    if not made.ready:
        pytest.skip(f"no machine to install on can be made here: {made.why_not()}")
    yield made
    made.stop()
