import enum
import json

import pydantic
import pytest

from support import ALIAS

MESSAGES = [{"role": "user", "content": "Describe a ship as JSON."}]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mast(pydantic.BaseModel):
    height: int = pydantic.Field(ge=1, le=40)
    sails: list[Colour] = pydantic.Field(max_length=2)


class Ship(pydantic.BaseModel):
    colour: Colour
    afloat: bool
    captain: bool | None
    masts: list[Mast] = pydantic.Field(min_length=1, max_length=2)


@pytest.mark.parametrize("temperature", [0, 1])
def test_the_sdk_parses_a_pydantic_model(client, temperature):
    answer = client.chat.completions.parse(model=ALIAS, messages=MESSAGES, response_format=Ship, max_tokens=400,
                                           temperature=temperature, seed=3)
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    assert isinstance(choice.message.parsed, Ship)


def test_streamed_it_is_the_same(client):
    with client.chat.completions.stream(model=ALIAS, messages=MESSAGES, response_format=Ship, max_tokens=400,
                                        temperature=0.8, seed=4) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Ship)
    assert "".join(pieces) == final.choices[0].message.content
    assert len(pieces) > 3


def test_n_answers_each_hold_it_by_themselves(client):
    answer = client.chat.completions.create(
        model=ALIAS, messages=MESSAGES, n=4, max_tokens=60, seed=5, temperature=1.5,
        response_format={"type": "json_schema", "json_schema": {"name": "pick", "strict": True, "schema": {
            "type": "object", "properties": {"pick": {"enum": [1, 2, 3]}}, "required": ["pick"],
            "additionalProperties": False}}})
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    for choice in answer.choices:
        assert json.loads(choice.message.content)["pick"] in (1, 2, 3)
        assert choice.finish_reason == "stop"


@pytest.mark.parametrize("seed", range(3))
def test_json_object_is_one_as_far_as_it_goes(client, seed):
    answer = client.chat.completions.create(model=ALIAS, messages=MESSAGES, max_tokens=150, seed=seed,
                                            response_format={"type": "json_object"})
    (choice,) = answer.choices
    assert choice.message.content.lstrip().startswith("{")
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict)


def test_patterns_lengths_and_formats_hold(client):
    schema = {"type": "object", "additionalProperties": False, "required": ["id", "day", "code"], "properties": {
        "id": {"type": "string", "pattern": r"^[A-Z]{2}-\d{4}$"},
        "day": {"type": "string", "format": "date"},
        "code": {"type": "string", "minLength": 3, "maxLength": 5}}}
    answer = client.chat.completions.create(
        model=ALIAS, messages=MESSAGES, max_tokens=100, seed=1, temperature=1,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}})
    value = json.loads(answer.choices[0].message.content)
    assert list(value) == ["id", "day", "code"]
    assert len(value["id"]) == 7 and value["id"][2] == "-" and value["id"][3:].isdigit()
    assert len(value["day"]) == 10
    assert 3 <= len(value["code"]) <= 5


def test_a_grammar_holds_with_stop_and_ignored_end(client):
    def ask(**options):
        return client.chat.completions.create(model=ALIAS, messages=MESSAGES, seed=2, **options).choices[0]

    choice = ask(extra_body={"grammar": 'root ::= "yes" | "no"', "ignore_eos": True}, max_tokens=20)
    assert choice.message.content in ("yes", "no") and choice.finish_reason == "stop"
    choice = ask(extra_body={"grammar": 'root ::= [a-c]{5} "." [x-z]*'}, stop=["."], max_tokens=20)
    assert len(choice.message.content) == 5 and set(choice.message.content) <= set("abc")
    choice = ask(extra_body={"grammar": "root ::= [a-c]+"}, max_tokens=7)
    assert set(choice.message.content) <= set("abc")
