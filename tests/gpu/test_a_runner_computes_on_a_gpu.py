import math
import os
import signal

from support import ALIAS, MODEL, Runner, Server, Stream, ask, wait_until

LAYERS = int(os.environ.get("FLOTILLA_GPU_LAYERS") or 0)


def test_its_layers_are_there(runner):
    assert ask(runner.sdk(), max_tokens=4).usage.completion_tokens > 0
    assert "has no effect" not in runner.log()


def test_its_memory_is_the_devices(runner, nvidia):
    ask(runner.sdk(), max_tokens=4)
    # In a container it names processes by other ids, and then only that there is one can be seen.
    assert nvidia(), "no process computes on the device"


def first_token(talks):
    choice = ask(talks.sdk(), "The capital of France is", max_tokens=1, temperature=0, logprobs=True).choices[0]
    return choice.logprobs.content[0].logprob


def test_it_computes_what_a_processor_computes(runner, start):
    on_cpu = start(Runner, "--model", MODEL, "--gpu-layers", "0")
    assert math.isclose(first_token(runner), first_token(on_cpu), abs_tol=0.3)


def test_streams_share_its_passes(runner):
    client = runner.sdk()
    options = {"max_tokens": 64, "extra_body": {"ignore_eos": True}}
    streams = [Stream(client, f"Story {number}", **options) for number in range(16)]
    assert {stream.end().usage.completion_tokens for stream in streams} == {64}


def test_a_conversation_is_not_computed_twice(runner):
    client = runner.sdk()
    story = "Once upon a time there was a lighthouse by the sea. " * 20
    first = ask(client, story, max_tokens=8).usage
    again = ask(client, story, max_tokens=8).usage
    assert not first.prompt_tokens_details.cached_tokens
    assert again.prompt_tokens_details.cached_tokens > first.prompt_tokens // 2


def test_a_killed_replica_costs_no_answer(start):
    server = start(Server)
    server.load(nodes=2, gpu_layers=LAYERS, context=1024)
    client = server.sdk()
    options = {"max_tokens": 200, "extra_body": {"ignore_eos": True}}
    streams = [Stream(client, f"Story {number}", **options) for number in range(8)]
    for stream in streams:
        assert stream.begun.wait(60)
    os.kill(server.runners()[0], signal.SIGKILL)
    assert {stream.end().usage.completion_tokens for stream in streams} == {200}
    wait_until("both serve", lambda: all(replica["live"] for replica in server.replicas(ALIAS)))
