"""A replica is killed in the middle of each API's stream: the stream goes on in its own form, unbroken."""

import os
import signal
import threading

import pytest

from support import ALIAS, wait_until

STORY = "Tell me a long story about a ship."
LENGTH = 120


@pytest.fixture
def server(settled):
    return settled


def messages(server, seed, text):
    with server.anthropic().messages.stream(model=ALIAS, max_tokens=LENGTH, messages=[{"role": "user", "content": STORY}],
                                            extra_body={"seed": seed, "ignore_eos": True}) as stream:
        for event in stream:
            if event.type == "text":
                text.append(event.text)
        final = stream.get_final_message()
    assert final.stop_reason == "max_tokens" and final.usage.output_tokens == LENGTH
    assert final.content[0].text == "".join(text)


def completions(server, seed, text):
    finish = None
    for chunk in server.sdk().completions.create(model=ALIAS, prompt=STORY, max_tokens=LENGTH, seed=seed, stream=True,
                                                 echo=True, extra_body={"ignore_eos": True}):
        text.append(chunk.choices[0].text)
        finish = chunk.choices[0].finish_reason or finish
    assert finish == "length"


def responses(server, seed, text):
    events = []
    for event in server.sdk().responses.create(model=ALIAS, input=STORY, max_output_tokens=LENGTH, stream=True,
                                               extra_body={"seed": seed, "ignore_eos": True}):
        events.append(event)
        if event.type == "response.output_text.delta":
            text.append(event.delta)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.incomplete"
    assert events[-1].response.output_text == "".join(text)
    assert events[-1].response.usage.output_tokens == LENGTH


class Reading(threading.Thread):
    def __init__(self, read, server, seed):
        super().__init__(daemon=True)
        self.read, self.server, self.seed = read, server, seed
        self.text, self.error = [], None
        self.start()

    def run(self):
        try:
            self.read(self.server, self.seed, self.text)
        except BaseException as error:  # noqa: BLE001: whatever it is, the test shows it
            self.error = error

    def end(self):
        self.join(120)
        assert not self.is_alive()
        if self.error:
            raise self.error
        return "".join(self.text)


def read_all(server):
    return [Reading(read, server, seed) for read in (messages, completions, responses) for seed in (1, 2)]


def test_streams_go_on_in_their_own_form(server):
    expected = [reading.end() for reading in read_all(server)]
    readings = read_all(server)
    wait_until("all stream", lambda: all(len(reading.text) > 5 for reading in readings))
    os.kill(server.runners()[0], signal.SIGKILL)
    texts = [reading.end() for reading in readings]
    if server.pool()["exact_resume"]:
        assert texts == expected
    assert any(record["resumed"] for record in server.get_json("/admin/requests?limit=20")["requests"])


def test_whole_answers_too(server):
    def whole(server, seed, text):
        answer = server.anthropic().messages.create(model=ALIAS, max_tokens=LENGTH, extra_body={"ignore_eos": True, "seed": seed},
                                                    messages=[{"role": "user", "content": STORY}])
        assert answer.usage.output_tokens == LENGTH
        text.append(answer.content[0].text)

    expected = [Reading(whole, server, seed).end() for seed in (1, 2, 3)]
    readings = [Reading(whole, server, seed) for seed in (1, 2, 3)]
    wait_until("they run", lambda: sum(replica["busy_count"] for replica in server.replicas()) == 3)
    os.kill(server.runners()[0], signal.SIGKILL)
    texts = [reading.end() for reading in readings]
    if server.pool()["exact_resume"]:
        assert texts == expected
