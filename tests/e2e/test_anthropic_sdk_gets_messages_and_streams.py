import anthropic
import pytest

from support import ALIAS, ask

QUESTION = [{"role": "user", "content": "Tell me a story about the sea."}]


def say(place, messages=QUESTION, **options):
    options = {"model": ALIAS, "max_tokens": 30, "extra_body": {"temperature": 0, "seed": 1}} | options
    return place.anthropic().messages.create(messages=messages, **options)


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def input_of(message):
    """What came from the cache is counted apart."""
    return message.usage.input_tokens + message.usage.cache_read_input_tokens


def test_message_says_what_chat_says(place):
    message = say(place)
    chat = ask(place.sdk(), QUESTION[0]["content"], max_tokens=30, temperature=0)
    assert text_of(message) == chat.choices[0].message.content
    assert (message.type, message.role, message.model) == ("message", "assistant", ALIAS)
    assert message.id.startswith("msg_")
    assert message.stop_reason == "max_tokens" and message.stop_sequence is None
    assert input_of(message) == chat.usage.prompt_tokens
    assert message.usage.output_tokens == chat.usage.completion_tokens == 30


def test_stream_says_the_same(place):
    whole = say(place)
    with place.anthropic().messages.stream(model=ALIAS, max_tokens=30, messages=QUESTION,
                                           extra_body={"temperature": 0, "seed": 1}) as stream:
        names = [event.type for event in stream]
        final = stream.get_final_message()
    assert text_of(final) == text_of(whole)
    assert final.stop_reason == "max_tokens"
    assert input_of(final) == input_of(whole)
    assert final.usage.output_tokens == 30
    assert names[0] == "message_start" and names[-1] == "message_stop"
    assert names.count("content_block_start") == names.count("content_block_stop") == 1
    assert names.count("content_block_delta") > 10, "the text comes as it is made"


def test_raw_events_in_order(place):
    events = list(say(place, max_tokens=4, stream=True))
    names = [event.type for event in events]
    assert [name for name in names if name not in ("ping", "content_block_delta")] == [
        "message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"]
    assert input_of(events[0].message) == input_of(say(place, max_tokens=4)), "told from the first event on"


def test_system_and_blocks_reach_the_model(place):
    plain = say(place, system="You are a pirate.", max_tokens=4)
    blocks = say(place, [{"role": "user", "content": [{"type": "text", "text": "Tell me a story "},
                                                      {"type": "text", "text": "about the sea."}]}],
                 system=[{"type": "text", "text": "You are "}, {"type": "text", "text": "a pirate."}], max_tokens=4)
    assert input_of(plain) == input_of(blocks)
    assert text_of(plain) == text_of(blocks)
    assert input_of(plain) != input_of(say(place, max_tokens=4))


def test_stop_sequences_end_it_unseen(place):
    everything = text_of(say(place))
    word = everything.split()[3]
    message = say(place, stop_sequences=[" " + word])
    assert text_of(message) == everything[:everything.index(" " + word)]
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", " " + word)
    with place.anthropic().messages.stream(model=ALIAS, max_tokens=30, messages=QUESTION, stop_sequences=[" " + word],
                                           extra_body={"temperature": 0, "seed": 1}) as stream:
        assert stream.get_final_message().stop_sequence == " " + word


def test_a_last_message_of_the_assistants_is_continued(place):
    prefill = "Once upon a time, in the Kingdom of"
    message = say(place, [*QUESTION, {"role": "assistant", "content": prefill}], max_tokens=6)
    assert text_of(message) and not text_of(message).startswith("Once")
    closed = say(place, [*QUESTION, {"role": "assistant", "content": prefill}, QUESTION[0]], max_tokens=1)
    assert input_of(closed) > input_of(message)


def test_count_is_what_the_message_costs(place):
    prompt = {"model": ALIAS, "messages": QUESTION, "system": "Be brief."}
    counted = place.anthropic().messages.count_tokens(**prompt)
    assert counted.input_tokens == input_of(say(place, system="Be brief.", max_tokens=1))


def test_errors_are_its_own_exceptions(place):
    with pytest.raises(anthropic.NotFoundError) as caught:
        say(place, model="claude-none")
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "not_found_error"
    assert "claude-none" in caught.value.message and ALIAS in caught.value.message
    with pytest.raises(anthropic.BadRequestError) as caught:
        say(place, max_tokens=0)
    assert "max_tokens" in caught.value.message
    with pytest.raises(anthropic.BadRequestError) as caught:
        say(place, [{"role": "user", "content": "word " * 9000}], stream=True)
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert caught.value.request_id
    assert say(place, max_tokens=1).content


def test_bearer_and_x_api_key_are_tolerated(place):
    assert anthropic.Anthropic(base_url=place.url, auth_token="none").messages.create(
        model=ALIAS, max_tokens=1, messages=QUESTION)
