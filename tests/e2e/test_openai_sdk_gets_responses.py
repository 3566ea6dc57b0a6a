import json

import openai
import pytest

from support import ALIAS, ask


def respond(place, text="Tell me a story about the sea.", **options):
    options = {"model": ALIAS, "max_output_tokens": 20, "temperature": 0, "extra_body": {"seed": 1}} | options
    return place.sdk().responses.create(input=text, **options)


def test_response_says_what_chat_says(place):
    response = respond(place)
    chat = ask(place.sdk(), max_tokens=20, temperature=0)
    assert response.output_text == chat.choices[0].message.content
    assert response.object == "response" and response.id.startswith("resp_")
    assert response.status == "incomplete" and response.incomplete_details.reason == "max_output_tokens"
    assert response.usage.input_tokens == chat.usage.prompt_tokens
    assert response.usage.output_tokens == 20
    assert response.model == ALIAS


def test_stream_is_numbered_and_says_the_same(place):
    whole = respond(place)
    events = list(respond(place, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:4]] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
    assert [event.type for event in events[-4:]] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete"]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text
    assert len(deltas) > 5, "the text comes as it is made"
    assert events[-1].response.usage.output_tokens == 20


def test_stream_helper(place):
    with place.sdk().responses.stream(model=ALIAS, input="Say hi", max_output_tokens=200, temperature=0) as stream:
        for _ in stream:
            pass
        final = stream.get_final_response()
    assert final.output_text and final.status == "completed"


def test_instructions_and_items(place):
    chat = place.sdk().chat.completions.create(model=ALIAS, max_tokens=20, temperature=0, messages=[
        {"role": "system", "content": "Be a pirate."}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Arr"}, {"role": "user", "content": "Who are you?"}])
    response = respond(place, [{"role": "user", "content": "Hi"},
                               {"type": "message", "role": "assistant",
                                "content": [{"type": "output_text", "text": "Arr"}]},
                               {"role": "user", "content": [{"type": "input_text", "text": "Who are you?"}]}],
                       instructions="Be a pirate.")
    assert response.usage.input_tokens == chat.usage.prompt_tokens
    assert response.output_text == chat.choices[0].message.content


def test_a_conversation_goes_on_from_its_last_response(place):
    client = place.sdk()
    first = respond(place, "My name is Ada.", instructions="Be brief.")
    second = respond(place, "What is my name?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    same = client.chat.completions.create(model=ALIAS, max_tokens=20, temperature=0, messages=[
        {"role": "user", "content": "My name is Ada."}, {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "What is my name?"}])
    assert second.usage.input_tokens == same.usage.prompt_tokens, "instructions are not carried over"
    assert second.output_text == same.choices[0].message.content
    third = respond(place, "And?", previous_response_id=second.id, stream=True)
    last = list(third)[-1].response
    assert last.usage.input_tokens > second.usage.input_tokens

    assert client.responses.retrieve(first.id).output_text == first.output_text
    assert client.responses.input_items.list(first.id).data[0].content[0].text == "My name is Ada."
    with pytest.raises(openai.BadRequestError, match="stream"):
        client.responses.retrieve(first.id, stream=True)
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    assert respond(place, "Still?", previous_response_id=second.id).output_text


def test_what_was_not_stored_is_not_there(place):
    response = respond(place, store=False)
    with pytest.raises(openai.BadRequestError) as caught:
        respond(place, previous_response_id=response.id)
    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"


def test_an_item_of_an_earlier_response_is_named_by_its_id(place):
    asked, more = {"role": "user", "content": "My name is Ada."}, {"role": "user", "content": "What is my name?"}
    first = respond(place, [asked])
    said = {"role": "assistant", "content": [{"type": "output_text", "text": first.output_text}], "type": "message"}
    reference = {"type": "item_reference", "id": first.output[0].id}
    named, written = respond(place, [asked, reference, more]), respond(place, [asked, said, more])
    assert named.usage.input_tokens == written.usage.input_tokens
    assert named.output_text == written.output_text
    listed = place.sdk().responses.input_items.list(named.id, order="asc").data
    assert listed[1].id == first.output[0].id and listed[1].content[0].text == first.output_text
    last = list(respond(place, [asked, reference, more], stream=True))[-1].response
    assert last.output_text == named.output_text
    place.sdk().responses.delete(first.id)
    with pytest.raises(openai.BadRequestError) as caught:
        respond(place, [asked, reference, more])
    assert caught.value.param == "input[1].id" and caught.value.code == "item_not_found"


def test_allowed_tools_are_the_only_ones_that_are_called(place):
    tools = [{"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}
             for name in ("get_time", "get_date")]
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_date"}]}
    response = respond(place, "What time is it?", tools=tools, tool_choice=choice, max_output_tokens=100)
    assert [item.name for item in response.output if item.type == "function_call"] == ["get_date"]
    assert response.tool_choice.type == "allowed_tools" and len(response.tools) == 2
    choice["tools"].append({"type": "function", "name": "nobody"})
    with pytest.raises(openai.BadRequestError) as caught:
        respond(place, tools=tools, tool_choice=choice)
    assert caught.value.param == "tool_choice.tools[1]"


@pytest.mark.parametrize("options, named", [
    ({"background": True}, "background"),
    ({"truncation": "auto"}, "truncation"),
    ({"tools": [{"type": "web_search"}]}, "tools[0]"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"temperature": 9}, "temperature"),
])
def test_what_it_does_not_do_is_named(place, options, named):
    with pytest.raises(openai.BadRequestError) as caught:
        respond(place, **options)
    assert caught.value.param == named


def test_other_clients_responses_are_nobodys_business(shared):
    first = respond(shared)
    connection = shared.connection()
    connection.source_address = ("127.0.0.2", 0)
    connection.request("GET", f"/v1/responses/{first.id}")
    assert connection.getresponse().status == 404
    connection = shared.connection()
    connection.source_address = ("127.0.0.2", 0)
    connection.request("POST", "/v1/responses", json.dumps({
        "model": ALIAS, "input": [{"type": "item_reference", "id": first.output[0].id}]}), {"Content-Type": "application/json"})
    assert connection.getresponse().status == 400


def test_input_items_come_in_pages_newest_first(place):
    items = [{"role": "user", "content": f"number {number}"} for number in range(5)]
    response = respond(place, items)
    listed = place.sdk().responses.input_items
    assert [item.content for item in listed.list(response.id, limit=2)] == [f"number {number}" for number in range(4, -1, -1)]
    assert listed.list(response.id, order="asc", limit=1).data[0].content == "number 0"
    with pytest.raises(openai.BadRequestError, match="after"):
        listed.list(response.id, after="nothing")
