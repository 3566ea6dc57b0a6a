import json

import pytest

from support import Server


# Prompts are prefilled beside the streams that run, so only answers of some length overlap in full.
TOKENS = 100


def burst(server, tokens=TOKENS):
    done = server.command("bench", "burst", server.url, "--requests", 20, "--max-tokens", tokens, "--json", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("settings, tokens, most, waves", [
    ({"batch": False}, 30, 1, 20),
    ({"batch": True}, TOKENS, 8, 3),
    ({"batch": True, "batch_size": 20}, TOKENS, 20, 1),
], ids=["without batch", "with batch", "with a batch of 20"])
@pytest.mark.timeout(400)
def test_one_node(start, settings, tokens, most, waves):
    server = start(Server)
    server.load(nodes=1, context=1024, **settings)
    seen = burst(server, tokens)
    assert (seen["completed"], seen["truncated"], seen["failed"]) == (20, 0, 0)
    assert seen["tokens"] == 20 * tokens
    assert seen["streaming_max"] <= most
    assert seen["waves"] >= waves
    assert seen["streaming_max"] >= most * 0.75
    server.wait_idle()


@pytest.mark.timeout(400)
def test_two_nodes_share_the_burst(shared):
    seen = burst(shared)
    assert seen["completed"] == 20
    assert 9 <= seen["streaming_max"] <= 16
    shared.wait_idle()


def test_the_table_is_for_people(shared):
    done = shared.command("bench", "burst", shared.url + "/v1", "--requests", 3, "--max-tokens", 5)
    assert done.returncode == 0, done.stderr
    assert "3 of 3" in done.stdout and "first token" in done.stdout and "waves" in done.stdout


def test_two_endpoints_are_measured_in_turns(shared, alone):
    done = shared.command("bench", "burst", shared.url, "--compare", alone.url, "--rounds", 2, "--requests", 3,
                          "--max-tokens", 5)
    assert done.returncode == 0, done.stderr
    assert shared.url in done.stdout and alone.url in done.stdout and "A / B" in done.stdout, done.stdout


def test_answers_that_are_not_whole_make_the_exit_code_1(start):
    server = start(Server, environment={"QUEUE_MAX": "1", "FLOTILLA_SYNTHETIC_STEP_US": "5000"})
    server.load(nodes=1, model="synthetic", batch=False)
    done = server.command("bench", "burst", server.url, "--json")
    assert done.returncode == 1, done.stdout
    seen = json.loads(done.stdout)
    assert seen["failed"] >= 17 and seen["completed"] + seen["failed"] == 20, seen
