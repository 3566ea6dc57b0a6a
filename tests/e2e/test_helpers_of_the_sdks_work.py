"""What the SDKs offer on top of the API: models parsed, tools made of functions, tasks that are cancelled."""

import asyncio
import typing

import anthropic
import openai
import pydantic

from support import ALIAS, wait_until

QUESTION = [{"role": "user", "content": "What is the weather in Oslo?"}]


class GetWeather(pydantic.BaseModel):
    """Weather of a place."""
    place: str = pydantic.Field(max_length=20)
    unit: typing.Literal["C", "F"]


class Report(pydantic.BaseModel):
    sunny: bool
    degrees: int = pydantic.Field(ge=-40, le=50)


def test_a_pydantic_model_is_a_tool_and_its_call_is_parsed(client):
    answer = client.chat.completions.parse(
        model=ALIAS, messages=QUESTION, tools=[openai.pydantic_function_tool(GetWeather)], tool_choice="required",
        parallel_tool_calls=False, temperature=0, max_tokens=200)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "GetWeather"
    assert isinstance(call.function.parsed_arguments, GetWeather)


def test_anthropics_parser_makes_the_model(place):
    message = place.anthropic().messages.parse(model=ALIAS, max_tokens=100, messages=QUESTION, output_format=Report,
                                               extra_body={"seed": 3})
    assert isinstance(message.parsed_output, Report)


def test_a_cancelled_task_frees_its_place(shared):
    async def cancel_both():
        client = openai.AsyncOpenAI(base_url=shared.url + "/v1", api_key="none", max_retries=0)
        other = anthropic.AsyncAnthropic(base_url=shared.url, api_key="none", max_retries=0)
        long = {"max_tokens": 1500, "messages": QUESTION, "extra_body": {"ignore_eos": True}, "model": ALIAS}
        tasks = [asyncio.create_task(client.chat.completions.create(**long)),
                 asyncio.create_task(other.messages.create(**long)),
                 asyncio.create_task(client.embeddings.create(model=ALIAS, input=["word " * 400] * 60))]
        await asyncio.to_thread(wait_until, "all run", lambda: sum(
            replica["busy_count"] for replica in shared.replicas()) == 3)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done)
        async with client.chat.completions.stream(**long) as stream:
            async for event in stream:
                if event.type == "content.delta":
                    break

    asyncio.run(cancel_both())
    shared.wait_idle(5)
