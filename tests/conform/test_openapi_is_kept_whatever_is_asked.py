"""Schemathesis makes requests of /openapi.json, right and wrong ones, from a seed: no answer is an error of the server that
the document does not name, and each has the type and the form that it names."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import support

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = ("no_undocumented_server_error", "content_type_conformance", "response_schema_conformance")
# Streams have no end; the others would speak to machines, or write files, by names that chance makes.
LEFT_OUT = ("followAll", "followStatus", "putCluster", "testNode", "trustNode", "bootstrapNode", "syncModel", "bench")


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    server = support.Server(tmp_path_factory.mktemp("openapi"), token="the-token-of-this-test",
                            environment={"FLOTILLA_SYNTHETIC_CANNED": "5"})
    try:
        server.load(nodes=1, model="synthetic")
        yield server
    finally:
        server.stop()


def ask(server, folder, *chosen):
    """How many requests were made of the operations that are chosen."""
    command = [pathlib.Path(sys.executable).parent / "st", "run", server.url + "/openapi.json", "--phases", "coverage,fuzzing",
               *(word for name, value in server.headers.items() for word in ("-H", f"{name}: {value}")),
               "--seed", "15", "--max-examples", "60", "--workers", "2", "--request-timeout", "30", "--generation-database", "none",
               "--no-color", "--suppress-health-check", "all", "--checks", ",".join(CHECKS), *chosen]
    done = subprocess.run(list(map(str, command)), cwd=folder, text=True, capture_output=True, timeout=280, check=False,
                          stdin=subprocess.DEVNULL, env=os.environ | {"SCHEMATHESIS_HOOKS": str(HERE / "openapi_hooks.py")})
    print(done.stdout[-1500:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert server.alive() and server.call("GET", "/livez")[0] == 200
    return int(re.search(r"(\d+) generated", done.stdout)[1])


@pytest.mark.timeout(300)
def test_answers_are_as_the_document_says(synthetic, tmp_path):
    left_out = [word for name in (*LEFT_OUT, "login") for word in ("--exclude-operation-id", name)]
    assert ask(synthetic, tmp_path, *left_out) > 3000


@pytest.mark.timeout(120)
def test_so_are_those_to_wrong_log_ins(synthetic, tmp_path):
    """Behind the others: after ten of them this address is let in no more for a minute."""
    assert ask(synthetic, tmp_path, "--include-operation-id", "login") > 20
