"""/openapi.json is valid, and real answers are as it says, to the last field."""

import json
import re

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from support import ALIAS, Server, wait_until

CHAT = {"model": ALIAS, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
# Real objects of OpenAI's and Anthropic's have more than the document names, and may.
OPEN = ("ChatAnswer", "ChatChunk", "CompletionAnswer", "ResponsesAnswer", "MessagesAnswer", "ChatUsage")


@pytest.fixture(scope="module")
def document(shared):
    return shared.get_json("/openapi.json")


@pytest.fixture(scope="module")
def fits(document):
    """fits(value, schema's name): with no field that the schema does not name."""
    schemas = {name: schema if name in OPEN else closed(schema)
               for name, schema in document["components"]["schemas"].items()}

    def check(value, name):
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
        assert not errors, [f"{error.json_path}: {error.message}"[:300] for error in errors]

    return check


def closed(schema):
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out = {name: closed(value) for name, value in schema.items()}
    if out.get("properties") and "additionalProperties" not in out:
        out["additionalProperties"] = False
    return out


def answer_schema(document, method, path, status):
    """The JSON schema's name of an answer, found as a client would find it."""
    for pattern, methods in document["paths"].items():
        if re.fullmatch(re.sub(r"{\w+}", "[^/]+", pattern), path) and method.lower() in methods:
            responses = methods[method.lower()]["responses"]
            response = responses.get(str(status), responses["default"])
            if "$ref" in response:
                response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
            (content,) = [c for kind, c in response.get("content", {}).items() if kind.endswith("json")]
            return content["schema"].get("$ref", "").rpartition("/")[2]
    raise AssertionError(f"the document has no {method} {path}")


def test_document_is_valid_openapi_with_our_version(shared, document):
    OpenAPIV31SpecValidator(document).validate()
    version = shared.get_json("/.well-known/inference-engine.json")["version"]
    assert document["info"]["version"] == version and document["openapi"] == "3.1.0"


def test_every_schema_is_used(document):
    text = json.dumps(document)
    unused = [name for name in document["components"]["schemas"] if f'schemas/{name}"' not in text]
    assert unused == []


QUESTIONS = [
    ("GET", "/v1/models", None),
    ("GET", "/v1/models?include_unloaded=true", None),
    ("GET", f"/v1/models/{ALIAS}", None),
    ("GET", "/v1/models/none", None),
    ("GET", "/health", None),
    ("GET", "/readyz", None),
    ("GET", "/.well-known/inference-engine.json", None),
    ("POST", "/v1/chat/completions", CHAT),
    ("POST", "/v1/chat/completions", CHAT | {"logprobs": True, "top_logprobs": 2, "n": 2, "stop": "e"}),
    ("POST", "/v1/chat/completions", CHAT | {"tools": TOOLS, "tool_choice": "required", "max_tokens": 40}),
    ("POST", "/v1/chat/completions", CHAT | {"temperature": 9}),
    ("POST", "/v1/completions", {"model": ALIAS, "prompt": "Once", "max_tokens": 4, "logprobs": 1}),
    ("POST", "/v1/responses", {"model": ALIAS, "input": "Hello", "max_output_tokens": 4}),
    ("POST", "/v1/messages", {"model": ALIAS, "max_tokens": 4, "messages": CHAT["messages"]}),
    ("POST", "/v1/messages", {"model": "none", "max_tokens": 4, "messages": CHAT["messages"]}),
    ("POST", "/v1/messages/count_tokens", {"model": ALIAS, "messages": CHAT["messages"]}),
    ("POST", "/v1/embeddings", {"model": ALIAS, "input": "Hello"}),
    ("POST", "/tokenize", {"model": ALIAS, "content": "Hello", "with_pieces": True}),
    ("POST", "/detokenize", {"model": ALIAS, "tokens": [1, 2]}),
    ("GET", "/v1/requests/none", None),
    ("GET", "/admin/clusters", None),
    ("GET", "/admin/clusters/local", None),
    ("GET", "/admin/clusters/none", None),
    ("PUT", "/admin/clusters/other", {"nodes": [{"id": "other-1", "env": {"PATH": "x"}}]}),
    ("GET", "/admin/clusters/local/status", None),
    ("GET", "/admin/clusters/local/models", None),
    ("POST", "/admin/clusters/local/load", {"model": "none.gguf"}),
    ("POST", "/admin/clusters/local/load", {"modell": "x"}),
    ("POST", "/admin/clusters/local/unload", {"alias": "none"}),
    ("POST", f"/admin/clusters/local/pools/{ALIAS}/replicas/local-1/resume", {}),
    ("GET", "/admin/declared", None),
    ("GET", "/admin/history?range=15m", None),
    ("GET", "/admin/history?by=replica", None),
    ("GET", "/admin/history?by=cluster", None),
    ("GET", "/admin/models", None),
    ("POST", "/admin/models/sync", {"cluster": "local", "model": "none.gguf"}),
    ("POST", "/admin/models/sync", {"cluster": "local"}),
    ("GET", "/admin/transfers", None),
    ("GET", "/admin/transfers/none", None),
    ("DELETE", "/admin/transfers/none", None),
    ("GET", "/admin/nodes", None),
    ("GET", "/admin/nodes/local-1/telemetry", None),
    ("POST", "/admin/nodes/test", {"id": "local-1"}),
    ("POST", "/admin/nodes/local-1/trust", {}),
    ("POST", "/admin/nodes/local-1/bootstrap", {}),
    ("GET", "/admin/doctor", None),
    ("GET", "/admin/requests?limit=5", None),
    ("GET", "/admin/sessions", None),
    ("GET", "/admin/keys", None),
    ("POST", "/admin/keys", {"name": "no good name"}),
    ("GET", "/admin/usage?by=key", None),
    ("GET", "/admin/usage?by=day", None),
    ("GET", "/admin/settings", None),
    ("PUT", "/admin/settings", {"NO_SUCH": 1}),
    ("GET", "/admin/events?limit=5", None),
    ("GET", "/admin/logs", None),
    ("POST", "/admin/login", {"token": "none is set"}),
    ("POST", "/admin/bench", {"requests": 2, "max_tokens": 4}),
    ("POST", "/admin/bench", {"requests": 0}),
]


def test_answers_are_as_it_says(shared, document, fits):
    for method, path, body in QUESTIONS:
        status, _, text = shared.call(method, path, body)
        name = answer_schema(document, method, path.partition("?")[0], status)
        try:
            fits(json.loads(text), name)
        except AssertionError as error:
            raise AssertionError(f"{method} {path}: {status} {text[:500]}\nis no {name}: {error}") from None


def test_preflight_and_a_requests_way_are_as_it_says(shared, fits):
    model = shared.pool()["model"]
    fits(shared.get_json(f"/admin/clusters/local/preflight?batch=true&model={model}"), "Preflight")
    _, headers, _ = shared.call("POST", "/v1/chat/completions", CHAT)
    own = shared.get_json(f"/v1/requests/{headers['x-request-id']}")
    fits(own, "RequestTimeline")
    fits(shared.get_json(f"/admin/requests/{own['id']}"), "RequestTimeline")
    _, _, text = shared.call("POST", "/v1/responses", {"model": ALIAS, "input": "Hello", "max_output_tokens": 4})
    kept = json.loads(text)["id"]
    fits(shared.get_json(f"/v1/responses/{kept}"), "ResponsesAnswer")
    fits(shared.get_json(f"/v1/responses/{kept}/input_items"), "ResponsesItems")
    fits(json.loads(shared.call("DELETE", f"/v1/responses/{kept}")[2]), "ResponsesDeleted")


def test_streams_are_as_it_says(shared, fits):
    _, _, text = shared.call("POST", "/v1/chat/completions",
                             CHAT | {"stream": True, "stream_options": {"include_usage": True}})
    chunks = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert chunks.pop() == "[DONE]"
    for chunk in chunks:
        fits(json.loads(chunk), "ChatChunk")
    for path, name in (("/admin/stream", "Overview"), ("/admin/clusters/local/status/stream", "ClusterStatus")):
        connection = shared.connection(10)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = b""
        while b"\n\n" not in text:
            text += answer.read1()
        connection.close()
        fits(json.loads(text.split(b"data: ", 1)[1].split(b"\n\n", 1)[0]), name)


def test_every_described_route_is_there(shared, document):
    """By a method that none has: the answer names those that the route takes."""
    for pattern, methods in document["paths"].items():
        path = re.sub(r"{\w+}", "x", pattern)
        status, headers, _ = shared.call("PATCH", path)
        assert status == 405, path
        takes = {method.strip().lower() for method in headers["Allow"].split(",")} - {"head"}
        assert takes == set(methods), path


@pytest.mark.parametrize("token", ["a token of this test", None])
def test_it_needs_a_key_or_the_token_as_soon_as_one_exists(start, token):
    server = start(Server, token=token)
    by = lambda secret: server.call(  # noqa: E731
        "GET", "/openapi.json", headers={"Authorization": secret and f"Bearer {secret}"})[0]
    assert by(None) == (401 if token else 200)
    status, made = server.admin("POST", "/keys", {"name": "one"})
    assert status == 201
    assert (by(None), by("none"), by(made["secret"])) == (401, 401, 200)
    assert not token or by(token) == 200


def test_devices_are_told_by_the_platforms_own_tool(start, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, Test Device, 8192, 1024, 7168, 12, 40, [N/A]'\n")
    tool.chmod(0o755)
    server = start(Server, environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    server.put_cluster([{"id": "local-1", "devices": [0]}])
    gpus = wait_until("the device", lambda: server.get_json("/admin/nodes/local-1/telemetry")["gpus"], 20)
    assert gpus == [{"index": 0, "name": "Test Device", "memory_total_bytes": 8 << 30,
                     "memory_used_bytes": 1 << 30, "busy_percent": 12, "temperature_c": 40, "power_w": None}]
