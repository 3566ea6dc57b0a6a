"""LangChain's own classes for OpenAI and Anthropic, pointed at us as their users would."""

import langchain_anthropic
import langchain_openai
import openai
import pydantic
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from support import ALIAS

MAKERS = {
    "openai": lambda url, **more: langchain_openai.ChatOpenAI(model=ALIAS, base_url=url + "/v1", api_key="none",
                                                              max_retries=0, **more),
    "openai responses": lambda url, **more: langchain_openai.ChatOpenAI(
        model=ALIAS, base_url=url + "/v1", api_key="none", max_retries=0, use_responses_api=True, **more),
    "anthropic": lambda url, **more: langchain_anthropic.ChatAnthropic(model=ALIAS, base_url=url, api_key="none",
                                                                       max_retries=0, **more),
}


@pytest.fixture(params=MAKERS)
def make(request, shared):
    return lambda **more: MAKERS[request.param](shared.url, **({"max_tokens": 24, "temperature": 0} | more))


class Place(pydantic.BaseModel):
    """Where somebody is."""
    city: str = pydantic.Field(description="its name")
    people: int = pydantic.Field(description="how many live there")


@tool
def get_weather(city: str, days: int) -> str:
    """The weather of a city for some days."""
    return f"{city}: sunny for {days} days"


def test_a_conversation_is_answered_and_counted(make):
    messages = [SystemMessage("You are brief."), HumanMessage("Hi."), AIMessage("Hello!"), HumanMessage("Tell a story.")]
    answer = make().invoke(messages)
    assert isinstance(answer, AIMessage) and answer.text.strip()
    usage = answer.usage_metadata
    assert usage["input_tokens"] > 20 and 0 < usage["output_tokens"] <= 24
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_stream_adds_up_to_the_answer(make):
    whole = make().invoke("Tell me about the sea.").text
    pieces = list(make().stream("Tell me about the sea."))
    assert "".join(piece.text for piece in pieces) == whole
    assert len([piece for piece in pieces if piece.text]) > 5


def test_several_at_once(make):
    answers = make().batch([f"Say something about the number {number}." for number in range(6)])
    assert len(answers) == 6 and all(answer.text for answer in answers)


def test_a_tool_is_called_and_its_result_taken(make):
    model = make(max_tokens=200).bind_tools([get_weather], tool_choice="any")
    question = HumanMessage("What is the weather in Paris for 3 days?")
    answer = model.invoke([question])
    (call,) = answer.tool_calls
    assert call["name"] == "get_weather" and sorted(call["args"]) == ["city", "days"], call
    result = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
    assert make().invoke([question, answer, result]).text.strip()


def test_a_streamed_tool_call_is_whole(make):
    model = make(max_tokens=200).bind_tools([get_weather], tool_choice="get_weather")
    whole = None
    for piece in model.stream("What is the weather in Paris for 3 days?"):
        whole = piece if whole is None else whole + piece
    (call,) = whole.tool_calls
    assert call["name"] == "get_weather" and isinstance(call["args"]["days"], int)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_a_structured_answer_is_an_object_of_its_class(make, method):
    model = make(max_tokens=200).with_structured_output(Place, method=method)
    place = model.invoke("Name a city of France and how many people live there.")
    assert isinstance(place, Place) and isinstance(place.people, int)


def test_a_prompt_that_is_too_long_is_an_error_of_the_request(shared):
    with pytest.raises(openai.BadRequestError, match="context"):
        MAKERS["openai"](shared.url).invoke("word " * 20_000)


def test_embeddings_are_vectors(shared):
    model = langchain_openai.OpenAIEmbeddings(model=ALIAS, base_url=shared.url + "/v1", api_key="none",
                                              check_embedding_ctx_length=False)
    vectors = model.embed_documents(["the sea", "a ship"])
    assert [len(vector) for vector in vectors] == [576, 576]
