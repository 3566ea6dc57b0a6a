"""The stand-in says nothing that the real server would not: its answers fit the API's own schemas."""

import json

import answers
import jsonschema
import pytest
from stand_in import ROOT, StandIn, busy_fleet

DOCUMENT = json.loads((ROOT / "src/api/openapi.json").read_text())


def closed(schema):
    """The schema, with fields that it does not name refused."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out = {name: closed(value) for name, value in schema.items()}
    if out.get("properties") and "additionalProperties" not in out:
        out["additionalProperties"] = False
    return out


def check(value, name):
    schemas = closed(DOCUMENT["components"]["schemas"])
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
    jsonschema.Draft202012Validator(schema).validate(value)


def schema_of(method, path):
    """The name of the schema of what a route answers."""
    for pattern, methods in DOCUMENT["paths"].items():
        parts, wanted = pattern.split("/"), path.split("/")
        same = len(parts) == len(wanted) and all(
            p.startswith("{") or p == w for p, w in zip(parts, wanted, strict=True)
        )
        if same and method.lower() in methods:
            content = methods[method.lower()]["responses"]["200"]["content"]
            schema = content.get("application/json", {}).get("schema", {})
            return schema.get("$ref", "").rpartition("/")[2]
    raise AssertionError(f"there is no route {method} {path}")


@pytest.fixture(scope="module")
def stand_in():
    server = StandIn()
    answers.everything(server)
    server.transfers = [answers.transfer()]
    server.show(*busy_fleet())
    yield server
    server.close()


def test_stream_is_as_the_api_says(stand_in):
    check(json.loads(json.dumps(stand_in.overview())), "Overview")


def test_answers_are_as_the_api_says(stand_in):
    for (method, path), (status, answer, _) in stand_in.answers.items():
        name = schema_of(method, path)
        if status == 200 and name:
            check(answer, name)
