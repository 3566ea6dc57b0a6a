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

# Objects of these types or roles are read; of any other they are refused.
KINDS = {
    "/v1/chat/completions": {
        "messages[developer]", "messages[system]", "messages[user]", "messages[assistant]", "messages[tool]", "content[text]",
        "content[refusal]", "tool_calls[function]", "tools[function]", "tool_choice[function]", "tool_choice[allowed_tools]",
        "response_format[text]",
        "response_format[json_object]", "response_format[json_schema]"},
    "/v1/responses": {
        "input[message]", "input[function_call]", "input[function_call_output]", "input[reasoning]", "content[input_text]",
        "content[output_text]", "content[refusal]", "content[reasoning_text]", "summary[summary_text]", "output[input_text]",
        "caller[direct]", "tools[function]", "tool_choice[function]", "tool_choice[allowed_tools]", "format[text]", "format[json_object]",
        "format[json_schema]"},
    "/v1/messages": {
        "messages[system]", "messages[user]", "messages[assistant]", "system[text]", "messages[system].content[text]",
        "messages[user].content[text]", "messages[user].content[tool_result]", "content[tool_result].content[text]",
        "messages[assistant].content[text]", "messages[assistant].content[thinking]",
        "messages[assistant].content[redacted_thinking]", "messages[assistant].content[tool_use]", "caller[direct]",
        "cache_control[ephemeral]",
        "tools[custom]", "input_schema[object]", "tool_choice[auto]", "tool_choice[any]", "tool_choice[tool]",
        "tool_choice[none]", "thinking[enabled]", "thinking[disabled]", "thinking[between_tools]", "thinking[adaptive]",
        "format[json_schema]", "output_format[json_schema]"},
}
# Refused whatever is asked of them.
OF_BLOCKS = {"messages[assistant].content[tool_use].toolset_name", "messages[user].content[tool_result].toolset_name",
             "tools[custom].input_examples"}
REFUSED = {
    "/v1/chat/completions": {
        "audio", "function_call", "functions", "moderation", "prediction", "web_search_options", "messages[assistant].audio",
        "messages[assistant].function_call"},
    "/v1/completions": {"suffix"},  # by this model, that cannot fill in
    "/v1/responses": {
        "access_programs", "background_options", "context_management", "conversation", "image", "max_tool_calls", "moderation",
        "prompt", "prompt_cache_options.comparison_response_id", "tools[function].output_schema",
        "previous_response_id",  # of an answer that nobody got
        "input[function_call].namespace", "input[function_call_output].namespace"},
    "/v1/messages": {
        "container", "diagnostics", "inference_geo", "user_profile_id", "workspace_id", *OF_BLOCKS},
    "/v1/messages of the beta": {
        "billing_policy", "compaction", "container", "context_management", "diagnostics", "fallback_credit_token", "fallbacks",
        "inference_geo", "mcp_servers", "messages[system].clear_at", "messages[system].output_config", "output_config.task_budget",
        "thinking[adaptive].block_binding", "thinking[enabled].block_binding", "thread", "user_profile_id", "workspace_id", *OF_BLOCKS},
    "/v1/messages/count_tokens": {"user_profile_id", "workspace_id", *OF_BLOCKS},
}
# They came with an earlier answer, and nothing of them goes into a prompt; or the SDK sends them as a header.
OF_TEXTS = {"messages[assistant].content[text].citations", "messages[system].content[text].citations",
            "messages[user].content[text].citations", "messages[user].content[tool_result].content[text].citations",
            "system[text].citations"}
ECHOED = {
    "/v1/responses": {"input[message].content[output_text].annotations", "input[message].content[output_text].logprobs"},
    "/v1/messages": OF_TEXTS,
    "/v1/messages of the beta": OF_TEXTS | {"betas"},
}
SAMPLES = {
    "/v1/chat/completions": {
        "response_format[json_schema]": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
        "tool_choice[function]": {"type": "function", "function": {"name": "weather"}},
        "tool_choice[allowed_tools]": {"type": "allowed_tools", "allowed_tools": {
            "mode": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]}}},
    "/v1/responses": {
        "input[message].content[output_text]": {"type": "output_text", "text": "Let me see."},
        "text.format[json_schema]": {"type": "json_schema", "name": "x", "schema": SCHEMA},
        "tool_choice[function]": {"type": "function", "name": "weather"},
        "tool_choice[allowed_tools]": {"type": "allowed_tools", "mode": "auto",
                                       "tools": [{"type": "function", "name": "weather"}]}},
    "/v1/messages": {
        "messages[user].content[tool_result]": {"type": "tool_result", "tool_use_id": "t1",
                                                    "content": [{"type": "text", "text": "sun"}]},
        "thinking[enabled]": {"type": "enabled", "budget_tokens": 2000}, "tool_choice[tool]": {"type": "tool", "name": "weather"},
        "output_config.format[json_schema]": {"type": "json_schema", "schema": SCHEMA},
        "output_format[json_schema]": {"type": "json_schema", "schema": SCHEMA}},
}
# In place of those that the type tells: without a bound an answer may fill the context.
VALUES = {"model": [ALIAS], "function_call": [{"name": "f"}], "max_output_tokens": [1]}


def ask(place, route, body):
    path = route.split(" ")[0]
    status, _, text = place.call("POST", path, body)
    if status == 200:
        return status, ""
    error = json.loads(text)["error"]
    assert json.loads(text).get("type") == ("error" if path.startswith("/v1/messages") else None), text
    return status, error["message"] if path.startswith("/v1/messages") else error["param"] or text


def wrong_with(place, route, field):
    refused, echoed = table(REFUSED, route), table(ECHOED, route)
    name = sdk_fields.path_of(field.place)

    def try_value(value):
        status, told = ask(place, route, sdk_fields.changed(field.body, field.place, value))
        if status == 200:
            return "taken"
        named = status == 400 and (name in told if route.startswith("/v1/messages") else told.startswith(name))
        return "refused" if named else f"{status}: {told}"

    if field.label in refused or field.is_kind:
        value = next((value for value in VALUES.get(field.label, field.values) if value is not None), {"some": 1})
        return [(value, one) for value in [value] if (one := try_value(value)) != "refused"]
    if field.label in echoed:
        return [(value, one) for value in field.values if (one := try_value(value)) != "taken"]
    found = [(value, try_value(value)) for value in VALUES.get(field.label, field.values)]
    out = [(value, one) for value, one in found if one not in ("taken", "refused")]
    if not field.entered and not any(one == "taken" for value, one in found if value is not None):
        out.append(("none is taken", found))
    if (one := try_value(field.wrong)) != "refused":
        out.append((field.wrong, one))
    return out


def table(of_all, route):
    """The beta and the count have the messages' own fields."""
    return of_all.get(route) or (of_all["/v1/messages"] if route.startswith("/v1/messages") else type(of_all["/v1/messages"])())


@pytest.mark.parametrize("route", ROUTES)
def test_fields(place, route):
    kind, body = ROUTES[route]
    left_out = {*table(REFUSED, route), *table(ECHOED, route)}
    walk = sdk_fields.Walk(table(SAMPLES, route), table(KINDS, route), left_out)
    wrong = {}
    for field in walk.fields(kind, body):
        if found := wrong_with(place, route, field):
            wrong[field.label] = found
    assert not wrong, "\n".join(f"{label}: {found}" for label, found in wrong.items())
    assert not left_out - walk.seen, "the SDK has them no more"
