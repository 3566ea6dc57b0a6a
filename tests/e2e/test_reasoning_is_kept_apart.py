import json
import os
import pathlib

import pytest

import support
from support import ALIAS, MODEL, Runner

CACHE = pathlib.Path(os.environ.get("FLOTILLA_CACHE") or support.ROOT / ".cache")
TEMPLATE = CACHE / "llama.cpp-0c1e570/models/templates/Qwen-Qwen3-0.6B.jinja"
# The sample model does not think by itself: rules make it write as one that does.
THINKS = r'root ::= "<think>\n" [a-z ]{12,20} "\n</think>\n\n" [A-Z]{5}'
ASK = {"model": ALIAS, "max_tokens": 60, "seed": 5, "messages": [{"role": "user", "content": "Which letters?"}]}


@pytest.fixture(scope="module")
def thinker(tmp_path_factory):
    """The sample model with the template of a family that thinks and knows tools."""
    runner = Runner(tmp_path_factory.mktemp("thinker"), "--model", MODEL, "--width", "4",
                    "--chat-template", TEMPLATE.read_text())
    try:
        yield runner
    finally:
        runner.stop()


def test_thoughts_are_no_content(thinker):
    message = thinker.sdk().chat.completions.create(**ASK, extra_body={"grammar": THINKS}).choices[0].message
    assert len(message.content) == 5 and message.content.isupper()
    assert 5 <= len(message.reasoning_content.strip()) <= 20
    assert "think" not in message.content


def test_streamed_they_come_first_and_add_up(thinker):
    thoughts, content = "", ""
    for chunk in thinker.sdk().chat.completions.create(**ASK, stream=True, logprobs=True,
                                                       extra_body={"grammar": THINKS}):
        for choice in chunk.choices:
            more = getattr(choice.delta, "reasoning_content", None)
            assert not (more and content), "a thought after the answer began"
            thoughts += more or ""
            content += choice.delta.content or ""
    whole = thinker.sdk().chat.completions.create(**ASK, extra_body={"grammar": THINKS}).choices[0].message
    assert (thoughts, content) == (whole.reasoning_content, whole.content)


def test_thoughts_end_with_their_budget(thinker):
    rules = r'root ::= "<think>" [a-z ]+ "</think>" [A-Z]{5}'
    ask = ASK | {"max_tokens": 200}

    def thoughts(**options):
        message = thinker.sdk().chat.completions.create(**ask, extra_body={"grammar": rules} | options).choices[0].message
        return message

    free = thoughts()
    held = thoughts(thinking_budget=6)
    assert len(held.content) == 5 and held.content.isupper()
    assert 0 < len(held.reasoning_content.split()) <= 6
    assert (free.reasoning_content or "").startswith(held.reasoning_content.rstrip()), "until then it is the same"
    answer = thinker.anthropic().messages.create(
        model=ALIAS, max_tokens=200, messages=ask["messages"], thinking={"type": "enabled", "budget_tokens": 6},
        extra_body={"grammar": rules, "seed": ask["seed"]})
    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert answer.content[0].thinking == held.reasoning_content


def test_thinking_can_be_turned_off(thinker):
    def prompt_tokens(**options):
        return thinker.sdk().chat.completions.create(**ASK | {"max_tokens": 1}, extra_body=options).usage.prompt_tokens

    thinking = prompt_tokens()
    for off in ({"enable_thinking": False}, {"chat_template_kwargs": {"enable_thinking": False}},
                {"reasoning_effort": "none"}):
        assert prompt_tokens(**off) > thinking, "this template writes an empty thought"


def test_a_schema_holds_behind_the_thoughts_or_without_them(thinker):
    schema = {"type": "object", "properties": {"letter": {"enum": ["a", "b"]}}, "required": ["letter"],
              "additionalProperties": False}
    answer = thinker.sdk().chat.completions.create(
        **ASK | {"max_tokens": 300}, extra_body={"enable_thinking": False},
        response_format={"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}})
    (choice,) = answer.choices
    if choice.finish_reason == "stop":
        assert json.loads(choice.message.content)["letter"] in ("a", "b")


def test_its_own_form_of_tool_calls_is_read(thinker):
    tool = {"type": "function", "function": {"name": "pick", "parameters": {
        "type": "object", "properties": {"letter": {"enum": ["a", "b"]}}, "required": ["letter"]}}}
    for seed in range(3):
        answer = thinker.sdk().chat.completions.create(
            **ASK | {"seed": seed, "max_tokens": 200}, tools=[tool], tool_choice="required", parallel_tool_calls=False,
            extra_body={"enable_thinking": False})
        (choice,) = answer.choices
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls[0].function.name == "pick"
        assert json.loads(choice.message.tool_calls[0].function.arguments)["letter"] in ("a", "b")
