"""What llama-server of our engine's source says of the same model, with the same kernels: prompts to the token, and how
likely it holds each next token."""

import json
import statistics

import pytest

import support
import vendored

TOKENS_WANTED = 2000


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    server = vendored.LlamaServer(vendored.build("llama-server"), tmp_path_factory.mktemp("theirs"), 1, context=4096)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    runner = support.Runner(tmp_path_factory.mktemp("ours"), "--model", support.MODEL, "--kernels", "stock", "--width", "2",
                            "--context", "4096")
    yield runner
    runner.stop()


def ask(server, path, body):
    status, _, text = server.call("POST", path, body, timeout=120)
    assert status == 200, (path, status, text)
    return json.loads(text)


CONVERSATIONS = {
    "one question": [{"role": "user", "content": "What is a lighthouse?"}],
    "a system message": [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Hello!"}],
    "turns": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello. What now?"},
              {"role": "user", "content": "Count to three.\nOne a line."}],
    "other scripts": [{"role": "user", "content": "Grüße aus Köln 🌊 — 你好，世界 и привет"}],
    "spaces and lines": [{"role": "user", "content": "  leading\n\n\ttab  and trailing  "}],
    "code": [{"role": "user", "content": "```py\ndef f(x):\n    return {'a': x ** 2}\n```"}],
    "empty": [{"role": "user", "content": ""}],
}


@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_prompts_are_the_same_to_the_token(ours, theirs, messages):
    text = ask(theirs, "/apply-template", {"messages": messages})["prompt"]
    expected = ask(theirs, "/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]
    assert ask(ours, "/tokenize", {"model": support.ALIAS, "messages": messages})["tokens"] == expected


@pytest.mark.parametrize("text", ["", " ", "a", "The sea.", "naïve café", "👩‍👩‍👧‍👦", "\n\n\n", "x = [1,2,3]  # list", "1234567890",
                                  "don't won't", "<|im_start|>user"])
def test_texts_are_cut_alike(ours, theirs, text):
    # What looks like a control token is text: theirs has to be told so.
    body = {"content": text, "parse_special": False}
    assert ask(ours, "/tokenize", body)["tokens"] == ask(theirs, "/tokenize", body)["tokens"]


def next_of_theirs(server, tokens):
    """The next token and the log probabilities of the likeliest, by their texts."""
    answer = ask(server, "/completion", {"prompt": tokens, "n_predict": 1, "n_probs": 10, "temperature": 0,
                                         "cache_prompt": True})
    (place,) = answer["completion_probabilities"]
    return {bytes(one["bytes"]): one["logprob"] for one in place["top_logprobs"]}


def next_of_ours(server, tokens):
    answer = ask(server, "/v1/completions", {"model": support.ALIAS, "prompt": tokens, "max_tokens": 1, "logprobs": 5,
                                             "temperature": 0})
    (top,) = answer["choices"][0]["logprobs"]["top_logprobs"]
    return {text.encode(): value for text, value in top.items()}


def test_log_probabilities_are_the_same_within_a_twentieth_of_a_nat(ours, theirs):
    """Both are given the same tokens, one more each time."""
    text = (support.ROOT / "docs/troubleshooting.md").read_text()
    tokens = ask(theirs, "/tokenize", {"content": text})["tokens"]
    differences, alike, places = [], 0, 0
    for begin in range(0, len(tokens), 256):
        part = tokens[begin:begin + 256]
        for count in range(1, len(part)):
            mine, other = next_of_ours(ours, part[:count]), next_of_theirs(theirs, part[:count])
            shared = mine.keys() & other.keys()
            differences += [abs(mine[one] - other[one]) for one in shared]
            alike += max(mine, key=mine.get) == max(other, key=other.get)
            places += 1
        if places >= TOKENS_WANTED:
            break
    assert places >= TOKENS_WANTED, "the text is too short"
    print(f"{places} places, {len(differences)} log probabilities: mean difference {statistics.mean(differences):.4f}, "
          f"largest {max(differences):.3f}; the same first choice at {alike}")
    assert statistics.mean(differences) <= 0.05
    assert alike >= 0.97 * places


TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                   "required": ["city", "days"], "additionalProperties": False}}}


@pytest.fixture
def with_tools(tmp_path):
    """Of a model whose template knows no tools llama-server calls none, whatever tool_choice says."""
    (template,) = (support.MODEL.parents[1]).glob("llama.cpp-*/models/templates/Qwen-Qwen2.5-7B-Instruct.jinja")
    server = vendored.LlamaServer(vendored.build("llama-server"), tmp_path, 1, "--jinja", "--chat-template-file", template)
    yield server
    server.stop()


def test_a_required_tool_is_called_in_the_same_form(ours, with_tools):
    body = {"model": support.ALIAS, "messages": [{"role": "user", "content": "What is the weather in Paris for 3 days?"}],
            "tools": [TOOL], "tool_choice": "required", "max_tokens": 200, "temperature": 0}
    for server in (ours, with_tools):
        choice = ask(server, "/v1/chat/completions", body)["choices"][0]
        assert choice["finish_reason"] == "tool_calls", choice
        (call,) = choice["message"]["tool_calls"]
        assert call["type"] == "function" and call["function"]["name"] == "get_weather" and call["id"]
        arguments = json.loads(call["function"]["arguments"])
        assert sorted(arguments) == ["city", "days"] and isinstance(arguments["days"], int)


def test_an_answer_by_a_schema_has_the_same_shape(ours, theirs):
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"},
                                               "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}},
              "required": ["name", "age", "tags"], "additionalProperties": False}
    body = {"model": support.ALIAS, "messages": [{"role": "user", "content": "Describe a person."}], "max_tokens": 200,
            "temperature": 0,
            "response_format": {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}}
    for server in (ours, theirs):
        answer = json.loads(ask(server, "/v1/chat/completions", body)["choices"][0]["message"]["content"])
        assert list(answer) == ["name", "age", "tags"] and isinstance(answer["age"], int)
        assert set(answer["tags"]) <= {"a", "b"} and len(answer["tags"]) <= 2
