import json

from support import ALIAS, Stream, ask

PROMPT = "Repeat exactly: 👩‍👩‍👧‍👦🏳️‍🌈 日本語 العربية ñ 😀😃😄"


def test_no_piece_of_a_stream_holds_half_a_character(client):
    # Hot, so that the model says many rare bytes.
    for seed in range(4):
        stream = Stream(client, PROMPT, temperature=1.8, seed=seed, max_tokens=60).end()
        whole = ask(client, PROMPT, temperature=1.8, seed=seed, max_tokens=60)
        assert stream.text == whole.choices[0].message.content


def test_bytes_on_the_wire_are_utf8(shared):
    body = {"model": ALIAS, "stream": True, "max_tokens": 40, "temperature": 1.5, "seed": 3,
            "messages": [{"role": "user", "content": PROMPT}]}
    connection = shared.connection()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    text = connection.getresponse().read().decode("utf-8")  # strict
    assert text.endswith("data: [DONE]\n\n")


def test_prompt_in_many_scripts_comes_through(client):
    short = ask(client, "a", max_tokens=1).usage.prompt_tokens
    assert ask(client, PROMPT, max_tokens=1).usage.prompt_tokens > short + 20
