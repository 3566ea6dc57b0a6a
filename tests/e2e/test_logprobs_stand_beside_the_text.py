import math

import pytest

from support import ALIAS


def told(choice):
    return b"".join(bytes(token.bytes) for token in choice.logprobs.content)


def test_they_are_of_exactly_the_tokens_that_the_text_consists_of(client):
    answer = client.chat.completions.create(
        model=ALIAS, max_tokens=24, temperature=0, logprobs=True, top_logprobs=3,
        messages=[{"role": "user", "content": "Write about the sea."}], extra_body={"ignore_eos": True})
    (choice,) = answer.choices
    assert len(choice.logprobs.content) == answer.usage.completion_tokens == 24
    assert told(choice).decode() == choice.message.content
    for token in choice.logprobs.content:
        assert len(token.top_logprobs) == 3
        assert token.logprob <= 0
        likely = [top.logprob for top in token.top_logprobs]
        assert likely == sorted(likely, reverse=True)
        assert sum(math.exp(value) for value in likely) <= 1.0001
        # The greedy choice is the likeliest token.
        assert token.top_logprobs[0].bytes == token.bytes
        assert token.logprob == pytest.approx(likely[0], abs=1e-4)


@pytest.mark.parametrize("stop", [[" the"], ["e"], ["and", " a"]])
def test_tokens_of_a_stop_string_are_not_told(client, stop):
    ask = {"model": ALIAS, "max_tokens": 60, "temperature": 0, "stop": stop, "logprobs": True,
           "messages": [{"role": "user", "content": "Write one long sentence about the sea and the ships."}]}
    answer = client.chat.completions.create(**ask)
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    text = told(choice).decode()
    assert text.startswith(choice.message.content)
    last = choice.logprobs.content[-1] if choice.logprobs else None
    assert last is None or len(text) - len(choice.message.content) < len(last.bytes)

    shown, tokens = "", []
    for chunk in client.chat.completions.create(stream=True, **ask):
        for part in chunk.choices:
            shown += part.delta.content or ""
            if part.logprobs:
                tokens += part.logprobs.content
            # At every moment what was told is what was shown.
            if not part.finish_reason:
                assert b"".join(bytes(token.bytes) for token in tokens).decode() == shown
    assert shown == choice.message.content
    assert b"".join(bytes(token.bytes) for token in tokens) == told(choice)


def test_characters_of_several_tokens_come_whole(client):
    shown, told_bytes = "", b""
    for chunk in client.chat.completions.create(
            model=ALIAS, max_tokens=50, stream=True, logprobs=True, temperature=0,
            messages=[{"role": "user", "content": "Repeat: 日本語 👩‍👩‍👧 العربية"}],
            extra_body={"grammar": "root ::= [😀-🙏日本語]{12}"}):
        for part in chunk.choices:
            shown += part.delta.content or ""
            if part.logprobs:
                told_bytes += b"".join(bytes(token.bytes) for token in part.logprobs.content)
                assert told_bytes.decode() == shown
    assert len(shown) == 12


def test_a_runner_alone_tells_them_too(alone):
    answer = alone.sdk().chat.completions.create(
        model=ALIAS, max_tokens=5, n=2, logprobs=True, messages=[{"role": "user", "content": "Name a colour"}])
    for choice in answer.choices:
        assert told(choice).decode("utf-8", "replace").startswith(choice.message.content)
        assert choice.logprobs.content[0].top_logprobs == []
