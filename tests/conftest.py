"""What all tests of the real program share: cheap questions one server; whoever breaks or changes a server gets
their own."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import support  # noqa: E402


def pytest_configure():
    if not support.BINARY.exists():
        pytest.exit(f"{support.BINARY} is missing: run ./test, or set FLOTILLA_BINARY", 1)
    if not support.MODEL.exists():
        pytest.exit(f"{support.MODEL} is missing: run tools/fetch.py", 1)


@pytest.fixture(scope="session", autouse=True)
def runtime_dir():
    """Sockets of servers in folders with long names lie here, and go with the tests."""
    folder = tempfile.mkdtemp(prefix="flotilla-run-")
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = folder
    yield
    if before is None:
        del os.environ["XDG_RUNTIME_DIR"]
    else:
        os.environ["XDG_RUNTIME_DIR"] = before
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start(tmp_path):
    """start(Server, ...) and start(Runner, ...): a process in a folder of its own, ended with the test."""
    started = []

    def make(kind, *arguments, **options):
        folder = options.pop("folder", None)
        if folder is None:
            folder = tmp_path / f"{kind.__name__.lower()}-{len(started)}"
        folder.mkdir(exist_ok=True)
        process = kind(folder, *arguments, **options)
        started.append(process)
        return process

    yield make
    for process in reversed(started):
        process.stop()


@contextlib.contextmanager
def two_replicas(folder):
    server = support.Server(folder)
    try:
        server.load(nodes=2)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Two local nodes with batch, for the tests of one file."""
    with two_replicas(tmp_path_factory.mktemp("loaded")) as server:
        yield server


@pytest.fixture
def settled(loaded):
    """The same, when what the test before did to it is over."""
    support.wait_until("two replicas serve and no others are there", lambda: len(loaded.runners()) == 2 and
                       [replica["state"] for replica in loaded.replicas()] == ["ready"] * 2)
    loaded.wait_idle()
    return loaded


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """Two local nodes with batch. Tests leave it as they found it."""
    with two_replicas(tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """A runner without a gateway. Tests leave it as they found it."""
    runner = support.Runner(tmp_path_factory.mktemp("alone"), "--model", support.MODEL, "--width", "4")
    try:
        yield runner
    finally:
        runner.stop()


@pytest.fixture(scope="session")
def sdks(tmp_path_factory):
    """A folder with the pinned TypeScript SDKs and our scripts for them."""
    folder = tmp_path_factory.mktemp("typescript")
    for file in (support.ROOT / "tests/typescript").iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--omit=peer"],
                          cwd=folder, text=True, capture_output=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(params=["shared", "alone"])
def place(request):
    """What holds for a gateway and for a runner alike."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def client(shared):
    return shared.sdk()
