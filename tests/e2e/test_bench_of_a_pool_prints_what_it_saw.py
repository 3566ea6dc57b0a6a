import json

import pytest

from support import Server


def load_synthetic(start, nodes, **environment):
    server = start(Server, environment=environment)
    server.put_cluster(nodes)
    status, answer = server.admin("POST", "/clusters/local/load", {"model": "synthetic", "batch": True,
                                                                    "context": 65536})
    assert status == 200, answer
    return server


def test_conversations_stay_at_home_and_the_work_is_even(start):
    server = load_synthetic(start, 4, FLOTILLA_SYNTHETIC_STEP_US="2000", FLOTILLA_SYNTHETIC_TOKEN_US="10")
    answer = server.command("bench", "sessions", server.url, "--seed", 1, "--json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert report["turns"] == 200 and report["failed"] == 0 and report["nodes"] == 4
    assert report["at_home"] >= 0.95, report
    assert report["busiest_to_least"] <= 1.5, report
    assert "on their home" in server.command("bench", "sessions", server.url, "--conversations", 2).stdout


def test_relay_of_canned_answers(start):
    server = load_synthetic(start, 4, FLOTILLA_SYNTHETIC_CANNED="100")
    answer = server.command("bench", "gateway", server.url, "--seconds", "1", "--rounds", "1", "--json")
    assert answer.returncode == 0, answer.stderr
    (seen,) = json.loads(answer.stdout)["servers"]
    assert seen["failed"] == 0 and seen["chunks_per_s"] > 1000 and seen["first_byte_ms"] > 0


@pytest.mark.parametrize("count", [1000])
def test_a_thousand_requests_at_once_to_two_replicas_all_complete(start, count):
    server = load_synthetic(start, 2)
    answer = server.command("bench", "burst", server.url, "--requests", count, "--max-tokens", 8, "--json",
                            timeout=300)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert json.loads(answer.stdout)["completed"] == count
