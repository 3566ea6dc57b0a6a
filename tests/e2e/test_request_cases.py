"""Requests of tests/cases, each with what must come back; the notation is explained in tests/cases/README.md."""

import json
import pathlib
import time

import pytest

from support import ALIAS

FILES = sorted((pathlib.Path(__file__).parents[1] / "cases").glob("*.json"))
CASES = [case for file in FILES for case in json.loads(file.read_text())]
MISSING = object()


def filled(value):
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            text, times = value["$repeat"]
            return text * times
        return {key: filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item) for item in value]
    return ALIAS if value == "$MODEL" else value


def dig(value, path):
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return MISSING
    return value


def holds(value, wanted):
    if not isinstance(wanted, dict):
        return value == wanted
    if wanted.get("absent"):
        return value is MISSING or value in (None, [])
    if value is MISSING:
        return False
    return (("in" not in wanted or value in wanted["in"])
            and ("type" not in wanted or type(value).__name__ == wanted["type"].replace("null", "NoneType"))
            and ("contains" not in wanted or wanted["contains"].lower() in str(value).lower())
            and ("not_contains" not in wanted or wanted["not_contains"] not in str(value))
            and ("min" not in wanted or value >= wanted["min"])
            and ("max" not in wanted or value <= wanted["max"]))


def check_stream(text, expect):
    events = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    chunks = [json.loads(event) for event in events if event != "[DONE]"]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", [])]
    shown = "".join((choice.get("delta") or {}).get("content") or "" for choice in choices)
    if "done" in expect:
        assert (events[-1:] == ["[DONE]"]) == expect["done"]
    if "finish" in expect:
        assert [c["finish_reason"] for c in choices if c.get("finish_reason")][-1] in expect["finish"]
    for part in expect.get("text_not_contains", []):
        assert part not in shown
    for part in expect.get("text_contains", []):
        assert part in shown
    if expect.get("usage"):
        (usage,) = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
        assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(place, case):
    body = None
    if "raw_hex" in case:
        body = bytes.fromhex(case["raw_hex"])
    elif "raw" in case:
        body = case["raw"].encode()
    elif "body" in case:
        body = json.dumps(filled(case["body"])).encode()
    method = case.get("method", "POST" if body is not None else "GET")
    expect = case["expect"]
    began = time.monotonic()
    path = case.get("path", "/v1/chat/completions").replace("$MODEL", ALIAS)
    status, _, text = place.call(method, path, body, case.get("headers"))
    took = time.monotonic() - began
    assert status in expect["status"], text[:300]
    assert took <= expect.get("max_s", 60)
    if expect.get("utf8"):
        assert "\ufffd" not in text
    if case.get("stream") and status == 200:
        check_stream(text, expect)
    elif "json" in expect:
        answer = json.loads(text)
        for path, wanted in expect["json"].items():
            assert holds(dig(answer, path), filled(wanted)), f"{path} = {dig(answer, path)!r}, wanted {wanted!r}"
    assert place.call("GET", "/health")[0] == 200
