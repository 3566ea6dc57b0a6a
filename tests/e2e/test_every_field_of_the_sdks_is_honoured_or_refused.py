"""Each field that the openai and anthropic SDKs can send is looked at by the server: its values are taken or refused by
name, and a value of another type is refused by name. A field of a newer SDK that nothing reads fails here."""

import copy
import json

import pytest
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_create_params as beta_message_create_params
from openai.types import completion_create_params, embedding_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import response_create_params

import sdk_fields
from support import ALIAS

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ANTHROPIC = {
    "model": ALIAS, "max_tokens": 1, "stop_sequences": ["END"], "temperature": 0.5,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Let me see."}, {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}, "caller": {"type": "direct"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "sun"}]},
            {"type": "text", "text": "Well?"}]}],
    "tools": [{"name": "weather", "input_schema": SCHEMA}],
}
ROUTES = {
    "/v1/chat/completions": (chat_create_params.CompletionCreateParamsNonStreaming, {
        "model": ALIAS, "max_tokens": 1, "max_completion_tokens": 1, "logprobs": True,
        "logit_bias": {"5": 1}, "metadata": {"a": "b"},
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, {"type": "refusal", "refusal": "No."}],
             "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "sun"}]}],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]}),
    "/v1/completions": (completion_create_params.CompletionCreateParamsNonStreaming, {
        "model": ALIAS, "prompt": "The sea", "max_tokens": 1, "logit_bias": {"5": 1}}),
    "/v1/responses": (response_create_params.ResponseCreateParamsNonStreaming, {
        "model": ALIAS, "max_output_tokens": 1, "store": False, "metadata": {"a": "b"},
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."},
                                                                 {"type": "refusal", "refusal": "No."}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
             "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}", "caller": {"type": "direct"}},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "sun"}],
             "caller": {"type": "direct"}}],
        "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}]}),
    "/v1/embeddings": (embedding_create_params.EmbeddingCreateParams, {"model": ALIAS, "input": ["The sea"]}),
    "/v1/messages": (message_create_params.MessageCreateParamsNonStreaming, ANTHROPIC),
    "/v1/messages of the beta": (beta_message_create_params.MessageCreateParamsNonStreaming, ANTHROPIC),
    "/v1/messages/count_tokens": (message_count_tokens_params.MessageCountTokensParams,
                                  {name: value for name, value in ANTHROPIC.items()
                                   if name not in ("max_tokens", "stop_sequences", "temperature")}),
}

# What is refused whatever its value, with one; and objects by their type. None of a type or role: told by that alone.
NAMED = {"a": 1}
REFUSED = {
    "/v1/chat/completions": {
        "audio": NAMED, "functions": [{"name": "f"}], "function_call": {"name": "f"}, "moderation": NAMED, "prediction": NAMED,
        "web_search_options": NAMED, "messages[assistant].audio": NAMED, "messages[assistant].function_call": NAMED,
    },
}
# What changes no answer: it came with an earlier one, or tells no model here anything.
ECHOED = {}
SAMPLES = {}
# In place of those that the type tells.
VALUES = {"model": [ALIAS]}


def ask(place, route, body):
    path = route.split(" ")[0]
    status, _, text = place.call("POST", path, body)
    if status == 200:
        return status, ""
    error = json.loads(text)["error"]
    assert json.loads(text).get("type") == ("error" if path.startswith("/v1/messages") else None), text
    return status, error["message"] if path.startswith("/v1/messages") else error["param"] or text


def wrong_with(place, route, field):
    refused, echoed = REFUSED.get(route, {}), ECHOED.get(route, {})
    name = sdk_fields.path_of(field.place)

    def try_value(value):
        status, told = ask(place, route, sdk_fields.changed(field.body, field.place, value))
        if status == 200:
            return "taken"
        named = status == 400 and (name in told if route.startswith("/v1/messages") else told.startswith(name))
        return "refused" if named else f"{status}: {told}"

    if field.label in refused:
        values = [refused[field.label] or field.values[0]]
        return [(value, one) for value in values if (one := try_value(value)) != "refused"]
    if field.label in echoed:
        return [(value, one) for value in field.values if (one := try_value(value)) != "taken"]
    found = [(value, try_value(value)) for value in VALUES.get(field.label, field.values)]
    out = [(value, one) for value, one in found if one not in ("taken", "refused")]
    if not any(one == "taken" for value, one in found if value is not None):
        out.append(("none is taken", found))
    if (one := try_value(field.wrong)) != "refused":
        out.append((field.wrong, one))
    return out


@pytest.mark.parametrize("route", ROUTES)
def test_fields(place, route):
    kind, body = ROUTES[route]
    walk = sdk_fields.Walk(SAMPLES.get(route, {}), {*REFUSED.get(route, {}), *ECHOED.get(route, {})})
    wrong = {}
    for field in walk.fields(kind, body):
        if found := wrong_with(place, route, field):
            wrong[field.label] = found
    assert not wrong, "\n".join(f"{label}: {found}" for label, found in wrong.items())
    unknown = walk.leave_out - walk.seen
    assert not unknown, "the SDK has them no more"
