import json
import math
import os
import signal
import threading

import openai
import pytest

from support import ALIAS, Server, Stream, ask, wait_until

SHIPS = "A ship sails across the stormy sea."
BOATS = "A boat sails over the wild ocean."
TAX = "The annual tax return is due in April."


def embed(place, text, **options):
    return place.sdk().embeddings.create(model=ALIAS, input=text, **options)


def vectors(answer):
    assert [item.index for item in answer.data] == list(range(len(answer.data)))
    return [item.embedding for item in answer.data]


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_texts_get_unit_vectors_by_what_they_say(place):
    answer = embed(place, [SHIPS, BOATS, TAX])
    ships, boats, tax = vectors(answer)
    assert len(ships) == 576
    assert all(math.isclose(dot(vector, vector), 1, abs_tol=1e-4) for vector in (ships, boats, tax))
    assert dot(ships, boats) > dot(ships, tax)
    assert answer.model == ALIAS
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 15


def test_each_form_of_input_and_encoding_says_the_same(place):
    (text,) = vectors(embed(place, SHIPS))  # base64, as the SDK asks
    (floats,) = vectors(embed(place, SHIPS, encoding_format="float"))
    assert text == pytest.approx(floats, abs=1e-7)
    status, _, body = place.call("POST", "/tokenize", {"model": ALIAS, "prompt": SHIPS})
    assert status == 200
    tokens = json.loads(body)["tokens"]
    assert dot(vectors(embed(place, tokens))[0], text) > 0.9999
    assert dot(vectors(embed(place, [tokens]))[0], text) > 0.9999


def test_fewer_dimensions_are_the_first_ones_of_length_one(place):
    (whole,) = vectors(embed(place, SHIPS))
    (part,) = vectors(embed(place, SHIPS, dimensions=64))
    length = math.sqrt(dot(whole[:64], whole[:64]))
    assert part == pytest.approx([number / length for number in whole[:64]], abs=1e-3)
    with pytest.raises(openai.BadRequestError) as caught:
        embed(place, SHIPS, dimensions=577)
    assert caught.value.param == "dimensions" and "576" in caught.value.message


def test_many_inputs_come_in_their_order_beside_streams(shared):
    """More than all slots, while others write: their text is what it is alone."""
    alone = ask(shared.sdk(), max_tokens=24).choices[0].message.content
    streams = [Stream(shared.sdk(), "Tell me a story about the sea.", max_tokens=24) for _ in range(4)]
    texts = [f"Number {number} of the list." for number in range(40)]
    together = vectors(embed(shared, texts))
    for stream in streams:
        assert stream.end().text == alone or not shared.pool()["exact_resume"]
    for number in (0, 7, 39):
        assert dot(vectors(embed(shared, texts[number]))[0], together[number]) > 0.999
    record = shared.get_json("/admin/requests?limit=1")["requests"][0]
    assert record["prompt_tokens"] > 0


@pytest.fixture
def server(start):
    server = start(Server)
    server.load(nodes=2)
    return server


def test_a_killed_replica_costs_no_vector_and_a_key_has_its_limits(server):
    client = server.sdk()
    texts = [f"{SHIPS} Number {number}." for number in range(60)]
    expected = vectors(client.embeddings.create(model=ALIAS, input=texts))
    answers = {}

    def work(number):
        answers[number] = vectors(client.embeddings.create(model=ALIAS, input=texts))

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    wait_until("both replicas work", lambda: all(replica["busy_count"] for replica in server.replicas()))
    os.kill(server.runners()[0], signal.SIGKILL)
    for thread in threads:
        thread.join(120)
    assert len(answers) == 4
    for answer in answers.values():
        assert all(dot(one, other) > 0.999 for one, other in zip(answer, expected, strict=True))

    status, key = server.admin("POST", "/keys", {"name": "small", "requests_per_min": 2})
    assert status in (200, 201), key
    limited = server.sdk(api_key=key["secret"])
    for _ in range(2):
        assert limited.embeddings.create(model=ALIAS, input="x").data
    with pytest.raises(openai.RateLimitError):
        limited.embeddings.create(model=ALIAS, input="x")
    with pytest.raises(openai.AuthenticationError):
        server.sdk(api_key="wrong").embeddings.create(model=ALIAS, input="x")
