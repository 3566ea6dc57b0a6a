"""The checker of tests/chaos finds each kind of wrong answer, and its seeds are to be relied on."""

import sys

import pytest

from support import ROOT

sys.path.insert(0, str(ROOT / "tests/chaos"))

import questions  # noqa: E402
import schedule  # noqa: E402

WANTED = "The ship left the harbour at dawn, and nobody saw it again."


@pytest.mark.parametrize("got, wrong", [
    (WANTED, None),
    (WANTED[:30], "truncated"),
    ("", "truncated"),
    (WANTED[:30] + WANTED[20:], "repeated"),
    (WANTED + WANTED[-8:], "repeated"),
    (WANTED[:20] + WANTED[28:], "lost"),
    (WANTED[:20] + "zzzzzzzzzzzzzz", "changed"),
])
def test_texts_that_differ(got, wrong):
    assert questions.difference(got, WANTED) == wrong


def stream(*pieces, tokens=3, end=True, finish="stop"):
    question = questions.Question("q", "u", "/v1/chat/completions", {"stream": True})
    events = ['{"choices":[{"index":0,"delta":{"content":"%s"}}]}' % piece for piece in pieces]
    if finish:
        events.append('{"choices":[{"index":0,"delta":{},"finish_reason":"%s"}]}' % finish)
    events.append('{"choices":[],"usage":{"completion_tokens":%d}}' % tokens)
    text = "".join(f"data: {event}\n\n" for event in events + ["[DONE]"] * end)
    return questions.read(question, text.encode())


def test_answers_that_differ():
    wanted = stream("a", "b", "c")
    assert questions.verdict(stream("ab", "c"), wanted) is None
    assert questions.verdict(stream("a", "b", "c", end=False), wanted) == "truncated"
    assert questions.verdict(stream("a", "b", "c", finish=None), wanted) == "truncated"
    assert questions.verdict(stream("a", "b", "c", "c"), wanted) == "repeated"
    assert questions.verdict(stream("a", "b", "c", finish="length"), wanted) == "changed"
    assert questions.verdict(stream("a", "b", "c", tokens=4), wanted) == "miscounted"
    assert questions.part_verdict(stream("a", "b", finish=None, end=False), wanted) is None
    assert questions.part_verdict(stream("a", "a", finish=None, end=False), wanted) == "repeated"


def test_a_seed_gives_its_schedule_again():
    events = schedule.make(7, 600, 3)
    assert events == schedule.make(7, 600, 3) and events != schedule.make(8, 600, 3)
    assert 150 < len(events) < 250 and {event.fault for event in events} <= set(schedule.KINDS)
    ends = {}
    for event in events:
        assert event.at >= ends.get(event.fault, 0), event
        ends[event.fault] = event.at + event.lasts + schedule.KINDS[event.fault].apart


@pytest.mark.parametrize("name, count", [("kills", 99), ("hangs", 37)])
def test_a_steady_schedule_does_one_thing_at_its_pace(name, count):
    fault, every = schedule.STEADY[name]
    events = schedule.make_steady(name, 3, 300)
    assert events == schedule.make_steady(name, 3, 300) != schedule.make_steady(name, 4, 300)
    assert len(events) == count and {event.fault for event in events} == {fault}
    assert [event.at for event in events] == [every * (number + 1) for number in range(count)]
    assert {event.pick % 3 for event in events} == {0, 1, 2}
