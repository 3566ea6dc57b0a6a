"""Servers for the tests. Cheap questions share one; whoever breaks or changes a server gets their own."""

import pytest
import support


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """Two local nodes with batch. Tests leave it as they found it."""
    server = support.Server(tmp_path_factory.mktemp("shared"))
    try:
        server.load(nodes=2)
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """A runner without a gateway. Tests leave it as they found it."""
    runner = support.Runner(tmp_path_factory.mktemp("alone"), "--model", support.MODEL, "--width", "4")
    try:
        yield runner
    finally:
        runner.stop()


@pytest.fixture(params=["shared", "alone"])
def place(request):
    """What holds for a gateway and for a runner alike."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def client(shared):
    return shared.sdk()
