import pytest

import openai

from support import Server, Stream, ask, wait_until

WORD = "xyzzy-crash"  # the synthetic engine dies of it


@pytest.fixture
def server(start):
    server = start(Server, environment={"FLOTILLA_SYNTHETIC_CRASH": WORD,
                                        "FLOTILLA_SYNTHETIC_STEP_US": "5000"})
    server.put_cluster(3)
    status, answer = server.admin("POST", "/clusters/local/load", {"model": "synthetic", "batch": True})
    assert status == 200, answer
    return server


def test_it_gets_500_and_is_refused_while_its_neighbours_resume(server):
    client = server.sdk()
    options = {"model": "synthetic", "max_tokens": 400, "extra_body": {"ignore_eos": True}}
    neighbours = [Stream(client, f"Story {number}", seed=number, **options) for number in range(12)]
    wait_until("all stream", lambda: all(stream.pieces > 3 for stream in neighbours))
    with pytest.raises(openai.InternalServerError) as raised:
        ask(client, f"Say {WORD}", model="synthetic", max_tokens=4)
    assert raised.value.status_code == 500 and raised.value.code == "poison"
    for stream in neighbours:
        assert stream.end().usage.completion_tokens == 400
    assert any(stream.served["resumed"] for stream in neighbours)
    assert server.log().count("ended: crashed") == 2
    # Once more: it reaches no third runner.
    runners = wait_until("all are back", lambda: len(server.runners()) == 3 and server.runners())
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, f"Say {WORD}", model="synthetic", max_tokens=4)
    assert raised.value.code == "poison"
    ask(client, "Say nothing", model="synthetic", max_tokens=4)
    assert server.runners() == runners


def test_who_was_beside_it_is_not_blamed(server):
    client = server.sdk()
    poison = Stream(client, f"Say {WORD}", model="synthetic", max_tokens=4)
    beside = [Stream(client, f"Story {number}", model="synthetic", max_tokens=40) for number in range(20)]
    for stream in beside:
        stream.end()
    poison.join(60)
    assert poison.error is not None and poison.error.status_code == 500
    assert server.log().count("ended: crashed") <= 2
