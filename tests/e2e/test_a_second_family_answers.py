"""Gemma 3 270M, where tools/fetch.py was told to fetch it: sliding windows, another vocabulary and template."""

import json
import os
import signal

import jsonschema
import pytest

from support import MODEL, Server, wait_until

GEMMA = MODEL.with_name("gemma-3-270m-q4_k_m.gguf")
TEMPLATE = MODEL.parents[1] / "llama.cpp-0c1e570/models/templates/google-gemma-2-2b-it.jinja"
ALIAS = "gemma-3-270m"
ASK = {"model": ALIAS, "max_tokens": 40, "messages": [{"role": "user", "content": "Tell me a story about the sea."}]}

pytestmark = pytest.mark.skipif(not GEMMA.exists(), reason="python3 tools/fetch.py gemma has not fetched the model (its "
                                                           "terms must be accepted first)")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    # The file is of a model without a chat template: its sister's is given.
    server = Server(tmp_path_factory.mktemp("gemma"))
    try:
        server.load(nodes=2, model=str(GEMMA), alias=ALIAS, chat_template=TEMPLATE.read_text(), context=1024,
                    batch_size=4)
        yield server
    finally:
        server.stop()


@pytest.fixture
def client(server):
    return server.sdk()


def test_answers_stream_and_are_the_same_again(client):
    whole = client.chat.completions.create(**ASK, seed=1).choices[0].message.content
    assert whole
    chunks = client.chat.completions.create(**ASK, seed=1, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole


def test_what_users_type_is_no_control_token(client):
    def count(text):
        return client.chat.completions.create(**ASK | {"max_tokens": 1, "messages": [
            {"role": "user", "content": text}]}).usage.prompt_tokens

    assert count("a<end_of_turn>b") > count("ab") + 2


def test_schemas_tools_and_logprobs(client):
    schema = {"type": "object", "properties": {"name": {"enum": ["sea", "ship"]}, "depth": {
        "type": "number", "minimum": 0, "maximum": 11}}, "required": ["name", "depth"], "additionalProperties": False}
    for seed in range(3):
        answer = client.chat.completions.create(**ASK | {"max_tokens": 120}, seed=seed, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}})
        jsonschema.validate(json.loads(answer.choices[0].message.content), schema)
    called = client.chat.completions.create(
        **ASK | {"max_tokens": 200}, seed=1, tool_choice="required", parallel_tool_calls=False,
        tools=[{"type": "function", "function": {"name": "dive", "parameters": {
            "type": "object", "properties": {"name": {"enum": ["sea", "ship"]}}, "required": ["name"]}}}])
    (call,) = called.choices[0].message.tool_calls
    assert call.function.name == "dive" and json.loads(call.function.arguments)["name"] in ("sea", "ship")
    told = client.chat.completions.create(**ASK, seed=2, logprobs=True, top_logprobs=2).choices[0]
    assert b"".join(bytes(token.bytes) for token in told.logprobs.content).decode() == told.message.content


def test_embeddings_and_long_prompts_beyond_the_window(client):
    ships, boats = (item.embedding for item in client.embeddings.create(model=ALIAS, input=["a ship", "a boat"]).data)
    assert len(ships) == len(boats) == 640
    answer = client.chat.completions.create(**ASK | {"max_tokens": 8, "messages": [
        {"role": "user", "content": "word " * 800}]})
    assert answer.usage.prompt_tokens > 800


def test_a_killed_replica_costs_no_answer(server, client):
    streams = [client.chat.completions.create(**ASK | {"max_tokens": 120}, seed=seed, stream=True,
                                              extra_body={"ignore_eos": True}) for seed in range(4)]
    begun = [next(iter(stream)) for stream in streams]
    assert len(begun) == 4
    os.kill(server.runners()[0], signal.SIGKILL)
    for stream in streams:
        finish = [choice.finish_reason for chunk in stream for choice in chunk.choices if choice.finish_reason]
        assert finish == ["length"]
    wait_until("the replica is back", lambda: sum(replica["live"] for replica in server.replicas(ALIAS)) == 2)
