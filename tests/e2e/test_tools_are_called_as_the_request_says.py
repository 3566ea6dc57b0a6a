import json

import openai
import pytest

from support import ALIAS

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather in a city",
    "parameters": {"type": "object", "additionalProperties": False, "required": ["city", "days"],
                   "properties": {"city": {"type": "string", "enum": ["Paris", "Oslo"]},
                                  "days": {"type": "integer", "minimum": 1, "maximum": 7}}}}}
CLOCK = {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}}
ASK = {"model": ALIAS, "max_tokens": 200, "temperature": 0.7, "seed": 11,
       "messages": [{"role": "user", "content": "What is the weather in Paris?"}]}
NAMED = {"type": "function", "function": {"name": "get_weather"}}


def check_weather(arguments):
    value = json.loads(arguments)
    assert value["city"] in ("Paris", "Oslo") and 1 <= value["days"] <= 7
    assert set(value) == {"city", "days"}


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_a_required_call_is_made(client, choice):
    tools = [WEATHER] if choice == "required" else [CLOCK, WEATHER]
    answer = client.chat.completions.create(tools=tools, tool_choice=choice, **ASK)
    (made,) = answer.choices
    assert made.finish_reason == "tool_calls"
    assert made.message.content is None
    (call,) = made.message.tool_calls
    assert call.type == "function" and call.function.name == "get_weather"
    assert len(call.id) == 9 and call.id.isalnum()
    check_weather(call.function.arguments)


def test_required_picks_one_of_several(client):
    for seed in range(4):
        answer = client.chat.completions.create(**ASK | {"tools": [CLOCK, WEATHER], "tool_choice": "required",
                                                         "seed": seed, "temperature": 1.3})
        (call,) = answer.choices[0].message.tool_calls
        if call.function.name == "get_weather":
            check_weather(call.function.arguments)
        else:
            assert call.function.name == "get_time" and json.loads(call.function.arguments) == {}


def test_allowed_tools_are_the_only_ones_that_are_called(client):
    def choice(mode, *tools):
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}

    for seed in range(3):
        answer = client.chat.completions.create(**ASK | {"tools": [CLOCK, WEATHER], "tool_choice": choice("required", NAMED),
                                                         "seed": seed})
        (call,) = answer.choices[0].message.tool_calls
        assert call.function.name == "get_weather"
        check_weather(call.function.arguments)
    one = client.chat.completions.create(**ASK | {"tools": [WEATHER], "max_tokens": 20})
    free = client.chat.completions.create(**ASK | {"tools": [CLOCK, WEATHER], "max_tokens": 20,
                                                   "tool_choice": choice("auto", NAMED)})
    assert free.usage.prompt_tokens == one.usage.prompt_tokens, "the model knows of no other"
    assert free.choices[0].message.content == one.choices[0].message.content
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**ASK | {"tools": [CLOCK], "tool_choice": choice("auto", NAMED)})
    assert caught.value.param == "tool_choice.allowed_tools.tools[0]"


def test_arguments_stream(client):
    whole = client.chat.completions.create(tools=[WEATHER], tool_choice="required", **ASK)
    deltas, reasons = [], []
    for chunk in client.chat.completions.create(tools=[WEATHER], tool_choice="required", stream=True, **ASK):
        for choice in chunk.choices:
            deltas += choice.delta.tool_calls or []
            assert not choice.delta.content
            reasons += [choice.finish_reason] if choice.finish_reason else []
    assert deltas[0].id and deltas[0].function.name == "get_weather"
    assert all(delta.index == 0 for delta in deltas)
    assert not any(delta.id or delta.function.name for delta in deltas[1:])
    assert len(deltas) > 3
    assert reasons == ["tool_calls"]
    arguments = "".join(delta.function.arguments or "" for delta in deltas)
    assert arguments == whole.choices[0].message.tool_calls[0].function.arguments
    check_weather(arguments)


def test_the_sdks_own_stream_helper_collects_the_call(client):
    with client.chat.completions.stream(tools=[WEATHER], tool_choice="required", **ASK) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    check_weather(final.choices[0].message.tool_calls[0].function.arguments)
    assert final.choices[0].finish_reason == "tool_calls"


def test_free_choice_answers_with_words_or_a_valid_call(client):
    for seed in range(3):
        answer = client.chat.completions.create(**ASK | {"tools": [WEATHER], "seed": seed, "max_tokens": 60})
        (choice,) = answer.choices
        assert choice.message.content or choice.message.tool_calls
        assert "<tool_call>" not in (choice.message.content or "") or choice.finish_reason == "length"
        if choice.finish_reason == "tool_calls":
            for call in choice.message.tool_calls:
                check_weather(call.function.arguments)


def test_parallel_calls_are_several_only_when_allowed(client):
    ask = ASK | {"tools": [CLOCK], "tool_choice": "required", "max_tokens": 120}
    one = client.chat.completions.create(parallel_tool_calls=False, **ask).choices[0].message.tool_calls
    assert len(one) == 1
    many = client.chat.completions.create(parallel_tool_calls=True, **ask).choices[0].message.tool_calls
    assert len(many) >= 1 and len({call.id for call in many}) == len(many)


def test_a_call_and_its_result_go_back_in(client):
    first = client.chat.completions.create(tools=[WEATHER], tool_choice="required", **ASK).choices[0].message
    messages = ASK["messages"] + [first.model_dump(exclude_none=True),
                                  {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "12 C, rain"}]
    answer = client.chat.completions.create(**ASK | {"messages": messages, "tools": [WEATHER], "max_tokens": 20,
                                                     "tool_choice": "none"})
    assert answer.choices[0].message.content
    assert answer.choices[0].message.tool_calls is None


def test_a_limit_cuts_a_call_and_says_so(client):
    answer = client.chat.completions.create(**ASK | {"tools": [WEATHER], "tool_choice": "required", "max_tokens": 12})
    assert answer.choices[0].finish_reason == "length"


def test_n_choices_call_by_themselves(client):
    answer = client.chat.completions.create(**ASK | {"tools": [WEATHER], "tool_choice": "required", "n": 3})
    ids = set()
    for choice in answer.choices:
        assert choice.finish_reason == "tool_calls"
        check_weather(choice.message.tool_calls[0].function.arguments)
        ids.add(choice.message.tool_calls[0].id)
    assert len(ids) == 3


def test_logprobs_come_with_the_call(client):
    answer = client.chat.completions.create(tools=[WEATHER], tool_choice="required", logprobs=True, **ASK)
    (choice,) = answer.choices
    text = b"".join(bytes(token.bytes) for token in choice.logprobs.content).decode()
    assert choice.message.tool_calls[0].function.arguments in text


def test_a_runner_alone_calls_too(alone):
    client = alone.sdk()
    answer = client.chat.completions.create(tools=[WEATHER], tool_choice=NAMED, **ASK)
    check_weather(answer.choices[0].message.tool_calls[0].function.arguments)
    with client.chat.completions.stream(tools=[WEATHER], tool_choice="required", **ASK) as stream:
        for _ in stream:
            pass
        check_weather(stream.get_final_completion().choices[0].message.tool_calls[0].function.arguments)
