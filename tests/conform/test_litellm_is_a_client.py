"""LiteLLM, by both of the ways that its users reach a server of their own."""

import json

import litellm
import pytest

from support import ALIAS

TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


@pytest.fixture(params=["openai", "anthropic"])
def complete(request, shared):
    base = shared.url + ("/v1" if request.param == "openai" else "")

    def call(text, **more):
        options = {"max_tokens": 24, "temperature": 0, "num_retries": 0} | more
        return litellm.completion(model=f"{request.param}/{ALIAS}", api_base=base, api_key="none",
                                  messages=[{"role": "user", "content": text}], **options)

    return call


def test_an_answer_has_text_and_counts(complete):
    answer = complete("Tell me about the sea.")
    assert answer.choices[0].message.content.strip()
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.prompt_tokens > 5 and answer.usage.completion_tokens == 24


def test_a_stream_adds_up_to_the_answer(complete):
    whole = complete("Tell me about the sea.").choices[0].message.content
    pieces = [chunk.choices[0].delta.content or "" for chunk in complete("Tell me about the sea.", stream=True)]
    assert "".join(pieces) == whole


def test_a_tool_is_called(complete):
    answer = complete("What is the weather in Paris?", tools=[TOOL], tool_choice="required", max_tokens=200)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "get_weather" and list(json.loads(call.function.arguments)) == ["city"]
    assert answer.choices[0].finish_reason == "tool_calls"


def test_wrong_requests_are_its_own_exceptions(complete):
    with pytest.raises(litellm.BadRequestError):
        complete("word " * 20_000)


def test_a_model_that_is_not_there_is_told(shared):
    with pytest.raises(litellm.NotFoundError, match="nobody"):
        litellm.completion(model="openai/nobody", api_base=shared.url + "/v1", api_key="none", num_retries=0,
                           messages=[{"role": "user", "content": "Hi"}])
