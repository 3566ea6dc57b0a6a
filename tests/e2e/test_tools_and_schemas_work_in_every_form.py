"""Tool calls and schemas by Anthropic's messages and OpenAI's responses, whole and streamed."""

import json

import anthropic
import pydantic
import pytest

from support import ALIAS

SCHEMA = {"type": "object", "additionalProperties": False, "required": ["city", "days"],
          "properties": {"city": {"type": "string", "enum": ["Paris", "Oslo"]},
                         "days": {"type": "integer", "minimum": 1, "maximum": 7}}}
QUESTION = "What is the weather in Paris?"
THEIRS = {"model": ALIAS, "max_tokens": 200, "messages": [{"role": "user", "content": QUESTION}],
          "extra_body": {"temperature": 0.7, "seed": 11}}
TOOL = {"name": "get_weather", "description": "The weather in a city", "input_schema": SCHEMA}
OURS = {"model": ALIAS, "max_output_tokens": 200, "input": QUESTION, "extra_body": {"temperature": 0.7, "seed": 11}}
FUNCTION = {"type": "function", "name": "get_weather", "parameters": SCHEMA}


class Trip(pydantic.BaseModel):
    city: str
    days: int


def check(value):
    assert value["city"] in ("Paris", "Oslo") and 1 <= value["days"] <= 7 and set(value) == {"city", "days"}


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}])
def test_a_message_uses_a_tool_and_takes_its_result(place, choice):
    client = place.anthropic()
    message = client.messages.create(tools=[TOOL], tool_choice=choice, **THEIRS)
    assert message.stop_reason == "tool_use"
    (use,) = [block for block in message.content if block.type == "tool_use"]
    assert use.name == "get_weather" and use.id
    check(use.input)

    after = client.messages.create(tools=[TOOL], model=ALIAS, max_tokens=20, messages=[
        *THEIRS["messages"], {"role": "assistant", "content": message.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "Sunny, 20 degrees"}]}])
    assert after.content


def test_a_tools_input_streams(place):
    whole = place.anthropic().messages.create(tools=[TOOL], tool_choice={"type": "any"}, **THEIRS)
    with place.anthropic().messages.stream(tools=[TOOL], tool_choice={"type": "any"}, **THEIRS) as stream:
        parts = [event.partial_json for event in stream if event.type == "input_json"]
        final = stream.get_final_message()
    assert len(parts) > 3
    assert json.loads("".join(parts)) == final.content[-1].input == whole.content[-1].input
    assert final.stop_reason == "tool_use"


def test_tools_are_counted(place):
    client, prompt = place.anthropic(), {"model": ALIAS, "messages": THEIRS["messages"]}
    with_tool = client.messages.count_tokens(tools=[TOOL], **prompt).input_tokens
    assert with_tool > client.messages.count_tokens(**prompt).input_tokens + 20


def test_a_response_calls_a_function_and_takes_its_output(place):
    client = place.sdk()
    response = client.responses.create(tools=[FUNCTION], tool_choice="required", **OURS)
    (call,) = [item for item in response.output if item.type == "function_call"]
    assert call.name == "get_weather" and response.status == "completed"
    check(json.loads(call.arguments))

    after = client.responses.create(model=ALIAS, tools=[FUNCTION], previous_response_id=response.id, max_output_tokens=20,
                                    input=[{"type": "function_call_output", "call_id": call.call_id,
                                            "output": "Sunny, 20 degrees"}])
    assert after.output
    with_items = client.responses.create(model=ALIAS, tools=[FUNCTION], max_output_tokens=20, input=[
        {"role": "user", "content": QUESTION}, call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny, 20 degrees"}])
    assert with_items.usage.input_tokens == after.usage.input_tokens


def test_a_functions_arguments_stream(place):
    events = list(place.sdk().responses.create(tools=[FUNCTION], tool_choice={"type": "function", "name": "get_weather"},
                                               stream=True, **OURS))
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    (done,) = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert len(deltas) > 3 and "".join(deltas) == done.arguments
    check(json.loads(done.arguments))
    assert events[-1].type == "response.completed"


def test_a_schema_holds_a_response_and_a_message(place):
    parsed = place.sdk().responses.parse(text_format=Trip, **OURS)
    assert isinstance(parsed.output_parsed, Trip)
    answer = place.anthropic().messages.create(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}, **THEIRS)
    check(json.loads(answer.content[0].text))


def test_logprobs_of_a_text_completion_are_four_lists(place):
    answer = place.sdk().completions.create(model=ALIAS, prompt="Once upon a time", max_tokens=6, temperature=0, logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert "".join(logprobs.tokens) == answer.choices[0].text
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.top_logprobs) == len(logprobs.text_offset)
    assert all(value <= 0 for value in logprobs.token_logprobs)
    assert all(len(top) == 2 for top in logprobs.top_logprobs)
    assert [answer.choices[0].text[at:at + len(token)] for at, token in zip(logprobs.text_offset, logprobs.tokens)] == \
        logprobs.tokens
    chunks = place.sdk().completions.create(model=ALIAS, prompt="Once upon a time", max_tokens=6, temperature=0,
                                            logprobs=2, stream=True)
    streamed = [token for chunk in chunks for choice in chunk.choices if choice.logprobs
                for token in choice.logprobs.tokens]
    assert streamed == logprobs.tokens


def test_a_broken_schema_is_named(place):
    with pytest.raises(anthropic.BadRequestError) as caught:
        place.anthropic().messages.create(output_config={"format": {"type": "json_schema", "schema": {"$ref": "#/none"}}},
                                          **THEIRS)
    assert "$ref" in caught.value.message or "none" in caught.value.message
