"""Schemas with every word that we hold, each answered at temperatures that tempt; python-jsonschema judges."""

import json

import jsonschema
import pytest

from support import ALIAS

TREE = {"type": "object", "required": ["name", "children"], "additionalProperties": False, "properties": {
    "name": {"enum": ["oak", "fir"]},
    "children": {"type": "array", "maxItems": 2, "items": {"$ref": "#"}}}}
LINKED = {"$ref": "#/$defs/node", "$defs": {"node": {
    "type": "object", "required": ["value", "next"], "additionalProperties": False, "properties": {
        "value": {"type": "integer", "minimum": 0, "maximum": 9},
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}}}
# Nothing but chance ends these; how deep an answer is when it is cut off tells that they may go on.
ENDLESS = {"recursion": '"children"', "a linked list": '"next"'}


def thing(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMAS = {
    "open bounds": thing(low={"type": "integer", "minimum": 100}, high={"type": "integer", "maximum": -5},
                         above={"type": "integer", "exclusiveMinimum": 99, "exclusiveMaximum": 120}),
    "fractions": thing(share={"type": "number", "minimum": 0, "maximum": 1},
                       cold={"type": "number", "minimum": -40.5, "exclusiveMaximum": -0.25},
                       price={"type": "number", "exclusiveMinimum": 0.99}),
    "multiples": thing(quarter={"type": "integer", "multipleOf": 15, "minimum": 0, "maximum": 60},
                       whole={"type": "number", "multipleOf": 1, "minimum": 3, "maximum": 300}),
    "different items": thing(colours={"type": "array", "uniqueItems": True, "items": {"enum": ["red", "blue", "green"]},
                                      "minItems": 2},
                             flags={"type": "array", "uniqueItems": True, "items": {"type": "boolean"}}),
    "recursion": TREE,
    "a linked list": LINKED,
    "nullable": thing(a={"type": ["string", "null"], "maxLength": 6}, b={"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
    "definitions": {"type": "object", "required": ["pets"], "additionalProperties": False,
                    "properties": {"pets": {"type": "array", "items": {"$ref": "#/$defs/pet"}, "minItems": 1, "maxItems": 2}},
                    "$defs": {"pet": {"oneOf": [thing(kind={"const": "cat"}, lives={"type": "integer", "minimum": 1, "maximum": 9}),
                                                thing(kind={"const": "dog"}, barks={"type": "boolean"})]}}},
    "texts": thing(day={"type": "string", "format": "date"}, mail={"type": "string", "format": "email"},
                   code={"type": "string", "pattern": r"^[A-Z]{2}-\d{3}$"},
                   short={"type": "string", "minLength": 1, "maxLength": 4}),
    "together": {"allOf": [
        {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]}]},
    "a tuple": {"type": "array", "prefixItems": [{"type": "boolean"}, {"enum": [1, 2, 3]}], "items": False,
                "minItems": 2, "maxItems": 2},
    "left out": {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "y"]}, "c": {"type": "null"}},
                 "additionalProperties": False},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_answer_is_valid(client, name):
    schema = SCHEMAS[name]
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    # Four at once, then as wild as may be: almost every token is drawn from the whole vocabulary.
    for temperature, seed in ((1, 1), (2, 2)):
        answer = client.chat.completions.create(
            model=ALIAS, n=4, seed=seed, temperature=temperature, max_tokens=220,
            messages=[{"role": "user", "content": "Write it."}],
            response_format={"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}})
        whole = [choice.message.content for choice in answer.choices if choice.finish_reason == "stop"]
        for text in whole:
            validator.validate(json.loads(text))
        for choice in answer.choices:
            assert choice.finish_reason in ("stop", "length")
        if name in ENDLESS:
            deepest = max(choice.message.content.count(ENDLESS[name]) for choice in answer.choices)
            assert whole or deepest > 2
            continue
        assert whole, f"none of four came to its end: {[choice.message.content for choice in answer.choices]}"
