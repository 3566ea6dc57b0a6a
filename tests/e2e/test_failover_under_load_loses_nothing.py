"""Replicas die or hang while people use them; nobody notices. FLOTILLA_CHAOS_S makes it last longer."""

import os
import random
import signal
import threading
import time

import pytest

from support import ALIAS, Runner, Server, Stream, ask, wait_until

pytestmark = pytest.mark.waits
SECONDS = float(os.environ.get("FLOTILLA_CHAOS_S") or 20)
TOKENS = 60


class Clients:
    """Keep asking, streamed and not, each for exactly TOKENS tokens; every text is kept."""

    def __init__(self, server, threads):
        self.client = server.sdk()
        self.ended = threading.Event()
        self.errors, self.texts, self.resumed = [], [], 0
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True)
                        for number in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        turn = 0
        while not self.ended.is_set():
            turn += 1
            prompt, seed = f"Client {number} asks for story {turn}", number * 1000 + turn
            options = {"model": "synthetic", "max_tokens": TOKENS, "seed": seed, "extra_body": {"ignore_eos": True}}
            try:
                if number % 3 == 0:
                    answer = ask(self.client, prompt, **options)
                    text, tokens = answer.choices[0].message.content, answer.usage.completion_tokens
                    self.resumed += answer.x_flotilla["resumed"]
                else:
                    stream = Stream(self.client, prompt, **options).end()
                    text, tokens = stream.text, stream.usage.completion_tokens
                    self.resumed += stream.served["resumed"]
                assert tokens == TOKENS, f"{tokens} tokens"
                self.texts.append((prompt, seed, text))
            except Exception as error:  # noqa: BLE001
                self.errors.append((prompt, repr(error)))

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(120)
        return self


@pytest.fixture
def server(start):
    # The synthetic engine: exact_resume, and steps long enough that most answers meet a loss.
    server = start(Server, environment={"REPLICA_BACKOFF_MIN_S": "0.5", "REPLICA_BACKOFF_MAX_S": "1",
                                        "FLOTILLA_SYNTHETIC_STEP_US": "15000"})
    server.put_cluster(3)
    status, answer = server.admin("POST", "/clusters/local/load", {"model": "synthetic", "batch": True})
    assert status == 200, answer
    return server


@pytest.mark.parametrize("number, every", [(signal.SIGKILL, 3), (signal.SIGSTOP, 8)], ids=["SIGKILL", "SIGSTOP"])
def test_random_replica_every_few_seconds(server, number, every):
    chance = random.Random(1)
    clients = Clients(server, 12)
    end = time.monotonic() + SECONDS
    hit, tick = 0, threading.Event()
    while time.monotonic() < end:
        tick.wait(every)  # the load's own pace: a replica every so often
        runners = server.runners()
        if len(runners) == 3:
            os.kill(chance.choice(runners), number)
            hit += 1
    clients.stop()
    assert not clients.errors
    assert hit >= SECONDS / every / 3 and clients.resumed > 0 and len(clients.texts) > 50
    # Whatever happened to it, each text is what an undisturbed run gives.
    server.wait_live(3, alias="synthetic")
    assert server.pool("synthetic")["exact_resume"] is True
    again = [(Stream(server.sdk(), prompt, model="synthetic", max_tokens=TOKENS, seed=seed,
                     extra_body={"ignore_eos": True}), text)
             for prompt, seed, text in chance.sample(clients.texts, 20)]
    for stream, text in again:
        assert stream.end().text == text, stream.prompt


def test_foreign_engine_is_replaced_before_the_first_token_only(start):
    engines = [start(Runner, "--synthetic", "--width", "4", environment={"FLOTILLA_SYNTHETIC_STEP_US": "20000"})
               for _ in range(2)]
    server = start(Server)
    server.put_cluster([{"id": f"far-{number}", "transport": "http", "url": engine.url}
                        for number, engine in enumerate(engines)])
    status, answer = server.admin("POST", "/clusters/local/load", {"model": "any", "alias": ALIAS, "batch": True})
    assert status == 200, answer
    options = {"max_tokens": 200, "extra_body": {"ignore_eos": True}}
    streams = [Stream(server.sdk(), f"Story {number}", **options) for number in range(4)]
    wait_until("all stream", lambda: all(stream.pieces > 2 for stream in streams))
    engines[0].kill()
    for stream in streams:
        stream.join(60)
    lost = [stream for stream in streams if stream.error is not None]
    assert len(lost) == 2 and all("lost" in str(stream.error) for stream in lost)
    assert all(stream.finish is None for stream in lost)
    # Nothing was shown of this one: the other engine answers it.
    Stream(server.sdk(), "Hello", max_tokens=4).end()
