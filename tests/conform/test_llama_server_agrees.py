"""What llama-server of our engine's source says of the same model, with the same kernels: prompts to the token, and how
likely it holds each next token. One thread each: two that wait for each other stand still where others compute too."""

import concurrent.futures
import json
import statistics

import pytest

import support
import vendored

TOKENS_WANTED = 2000
QUESTIONS = ["Tell me a story about the sea.", "How does a steam engine work?", "Write a small Python program and explain it.",
             "Grüße! Erzähl mir etwas über Köln.", "List ten animals and say a sentence about each.",
             "What should somebody know who moves to Japan?"]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    server = vendored.LlamaServer(vendored.build("llama-server"), tmp_path_factory.mktemp("theirs"), 1, "-t", 1, context=4096)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    runner = support.Runner(tmp_path_factory.mktemp("ours"), "--model", support.MODEL, "--kernels", "stock", "--width", "2",
                            "--context", "4096", "--threads", "1")
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


def recorded(server, seed):
    """An answer of ours, token by token: the bytes, and of the five likeliest (of which it is one) how likely each was."""
    body = {"model": support.ALIAS, "messages": [{"role": "user", "content": QUESTIONS[seed % len(QUESTIONS)]}], "seed": seed,
            "max_tokens": 250, "temperature": 1, "top_k": 5, "logprobs": True, "top_logprobs": 5}
    prompt = ask(server, "/tokenize", {"model": support.ALIAS, "messages": body["messages"]})["tokens"]
    choice = ask(server, "/v1/chat/completions", body)["choices"][0]
    return prompt, [(bytes(one["bytes"]), {bytes(top["bytes"]): top["logprob"] for top in one["top_logprobs"]})
                    for one in choice["logprobs"]["content"]]


def next_of_theirs(server, tokens):
    """The likeliest next tokens: bytes -> log probability, bytes -> id."""
    answer = ask(server, "/completion", {"prompt": tokens, "n_predict": 1, "n_probs": 40, "temperature": 0,
                                         "cache_prompt": True})
    (place,) = answer["completion_probabilities"]
    top = place["top_logprobs"]
    return {bytes(one["bytes"]): one["logprob"] for one in top}, {bytes(one["bytes"]): one["id"] for one in top}


@pytest.mark.timeout(900)
def test_log_probabilities_are_the_same_within_a_twentieth_of_a_nat(ours, theirs):
    """Answers that ours gave, two at a time, are read out to theirs token by token."""
    chosen, others, alike, seed = [], [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        while len(chosen) < TOKENS_WANTED:
            for tokens, steps in pool.map(lambda number: recorded(ours, number), (seed, seed + 1)):
                for text, mine in steps:
                    likely, ids = next_of_theirs(theirs, tokens)
                    assert text in likely, (text, mine)
                    chosen.append(abs(mine[text] - likely[text]))
                    others += [abs(mine[one] - likely[one]) for one in mine.keys() & likely.keys()]
                    alike += max(mine, key=mine.get) == max(likely, key=likely.get)
                    tokens = [*tokens, ids[text]]
            seed += 2
            assert seed < 100, "the answers are too short"
    told = (f"{len(chosen)} tokens of {seed} answers: mean difference {statistics.mean(chosen):.4f}, largest {max(chosen):.3f}; "
            f"of {len(others)} likeliest {statistics.mean(others):.4f}; the same first choice at {alike}")
    print(told)
    assert statistics.mean(chosen) <= 0.05, told
    assert statistics.mean(others) <= 0.05, told
    assert alike >= 0.97 * len(chosen), told


TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                   "required": ["city", "days"], "additionalProperties": False}}}


@pytest.fixture(scope="module")
def both_with_tools(tmp_path_factory):
    """The model's own template knows no tools, and of such a one llama-server calls none: both get one that does."""
    (template,) = (support.MODEL.parents[1]).glob("llama.cpp-*/models/templates/Qwen-Qwen2.5-7B-Instruct.jinja")
    folder = tmp_path_factory.mktemp("tools")
    servers = [support.Runner(folder, "--model", support.MODEL, "--kernels", "stock", "--context", "4096", "--threads", "1",
                              "--chat-template", template.read_text())]
    try:
        servers.append(vendored.LlamaServer(vendored.build("llama-server"), folder, 1, "-t", 1, "--jinja",
                                            "--chat-template-file", template, context=4096))
        yield servers
    finally:
        for server in servers:
            server.stop()


def weather_talk():
    """Earlier turns show the model how: llama-server lets text stand before a call that is required, and this one would
    never come to it."""
    talk = []
    for city, days in ("Oslo", 2), ("Rome", 5), ("Lima", 4):
        call = {"id": f"call_{city}", "type": "function",
                "function": {"name": "get_weather", "arguments": json.dumps({"city": city, "days": days})}}
        talk += [{"role": "user", "content": f"What is the weather in {city} for {days} days?"},
                 {"role": "assistant", "content": None, "tool_calls": [call]},
                 {"role": "tool", "tool_call_id": call["id"], "content": "sunny"},
                 {"role": "assistant", "content": "It is sunny."}]
    return [*talk, {"role": "user", "content": "What is the weather in Paris for 3 days?"}]


def streamed(server, body):
    """The choice that the pieces of a stream make."""
    status, _, text = server.call("POST", "/v1/chat/completions", body | {"stream": True}, timeout=120)
    assert status == 200, text
    message, calls, finish = {"content": ""}, {}, None
    for line in text.splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            finish = choice.get("finish_reason") or finish
            message["content"] += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or []:
                call = calls.setdefault(piece["index"], {"function": {"name": "", "arguments": ""}})
                call |= {name: piece[name] for name in ("id", "type") if piece.get(name)}
                for name in call["function"]:
                    call["function"][name] += piece.get("function", {}).get(name) or ""
    return {"finish_reason": finish, "message": message | {"tool_calls": list(calls.values())}}


def shape_of(choice):
    """What of a choice is alike whoever gives it: all but the ids, which only have to be there."""
    calls = choice["message"]["tool_calls"]
    assert all(call["id"] and call["type"] == "function" for call in calls), choice
    return (choice["finish_reason"], choice["message"].get("content") or "",
            [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls])


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_tool_is_called_in_the_same_form(both_with_tools, choice):
    body = {"model": support.ALIAS, "messages": weather_talk(), "tools": [TOOL], "tool_choice": choice, "max_tokens": 200,
            "temperature": 0}
    mine, other = (shape_of(ask(server, "/v1/chat/completions", body)["choices"][0]) for server in both_with_tools)
    assert mine == other == ("tool_calls", "", [("get_weather", {"city": "Paris", "days": 3})])
    assert [shape_of(streamed(server, body)) for server in both_with_tools] == [mine, mine]


def test_prompts_with_tools_are_the_same_to_the_token(both_with_tools):
    ours, theirs = both_with_tools
    body = {"messages": weather_talk(), "tools": [TOOL]}
    text = ask(theirs, "/apply-template", body)["prompt"]
    expected = ask(theirs, "/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]
    assert ask(ours, "/tokenize", body | {"model": support.ALIAS})["tokens"] == expected


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
