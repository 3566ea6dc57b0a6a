import os
import signal

import openai
import pytest

from conftest import page_allowed, port_of, stopped, streams, wait_gone
from support import ALIAS, MODEL, Stream, ask, wait_until

ENGINE = {"engine": "llama-server", "context": 1024, "batch_size": 4}


def test_it_answers_as_our_own_do(llama):
    server = llama()
    answer = server.load(nodes=1, **ENGINE)
    assert answer["batch"] is True and answer["alias"] == ALIAS
    assert answer["replicas"][0]["engine"] == "llama-server"
    assert answer["replicas"][0]["loaded_bytes"] == answer["replicas"][0]["model_bytes"] == MODEL.stat().st_size

    whole = ask(server.sdk(), max_tokens=8)
    assert whole.model == ALIAS and whole.choices[0].finish_reason == "length"
    assert whole.usage.completion_tokens == 8 and whole.usage.prompt_tokens > 8
    assert whole.id.startswith("chatcmpl-") and whole.x_flotilla["node"] == "local-1"
    stream = Stream(server.sdk(), "Hello", max_tokens=8).end()
    assert stream.finish == "length" and stream.usage.completion_tokens == 8
    assert stream.served["replica"] == "local-1" and stream.served["tokens_per_s"] > 0
    assert all(chunk.usage is None for chunk in ask(server.sdk(), stream=True, max_tokens=4))

    entry = server.get_json(f"/v1/models/{ALIAS}")["x_flotilla"]
    assert entry["engines"] == ["llama-server"] and entry["lacks"] == ["repetition_penalty"]
    assert entry["supports_tools"] and entry["batch"]
    assert page_allowed(server.engines(llama.program)[0]) not in ("*", "http://elsewhere.example")
    with pytest.raises(openai.BadRequestError) as caught:
        ask(server.sdk(), extra_body={"repetition_penalty": 1.2})
    assert caught.value.param == "repetition_penalty" and "llama-server" in caught.value.message


def test_it_tells_no_key_what_another_asked(llama):
    server = llama()
    text = " ".join(f"secret plan {number}" for number in range(60))

    def cached(key):
        usage = ask(server.sdk(api_key=key["secret"]), text, max_tokens=2).usage
        return usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens

    keys = [server.admin("POST", "/keys", {"name": name})[1] for name in ("mine", "theirs")]
    server.load(nodes=1, **ENGINE)
    assert [cached(key) for key in keys + keys] == [None] * 4
    status, answer = server.admin("POST", "/clusters/local/unload", {"alias": ALIAS})
    assert status == 200, answer
    server.load(share_prefixes=True, **ENGINE)
    cached(keys[0])
    assert cached(keys[1]) > 200


def test_an_engine_that_is_not_configured_is_refused_with_what_to_write(llama):
    server = llama()
    server.put_cluster(1)
    status, answer = server.admin("POST", "/clusters/local/load", {"model": str(MODEL), "engine": "vllm"})
    assert status == 422 and "engines: {vllm: {}}" in answer["detail"] and "flotilla.yaml" in answer["detail"]
    status, answer = server.admin("GET", f"/clusters/local/preflight?model={MODEL}&engine=nothing")
    assert status == 422 and "nothing" in answer["detail"]


def test_one_that_cannot_start_says_why(start):
    from conftest import Pool

    server = start(Pool, {"absent": "{command: [/does/not/exist, '{port}']}",
                          "broken": "{command: [sh, -c, 'echo out of luck >&2; exit 3']}"})
    server.put_cluster(1)
    for engine, reason in (("absent", "cannot start /does/not/exist: No such file"), ("broken", "out of luck")):
        status, answer = server.admin("POST", "/clusters/local/load", {"model": str(MODEL), "engine": engine})
        assert status == 502 and reason in answer["detail"], answer


def test_killed_under_load_it_costs_only_answers_that_have_begun(llama):
    server = llama()
    server.load(nodes=2, **ENGINE)
    first, second = server.engines(llama.program)
    under_way = streams(server, 8, max_tokens=200)
    for stream in under_way:
        stream.begun.wait(60)
    waiting = streams(server, 8, max_tokens=20)
    os.kill(first, signal.SIGKILL)
    for stream in under_way:
        stream.join(120)
    cut = [stream for stream in under_way if stream.error]
    assert 1 <= len(cut) <= 4, [stream.error for stream in under_way]
    for stream in cut:
        assert "lost in the middle" in str(stream.error)
        assert stream.finish is None
    for stream in waiting:
        stream.end()
    server.wait_live(2)
    assert second in server.engines(llama.program) and first not in server.engines(llama.program)


def test_whole_answers_survive_a_killed_engine(llama):
    server = llama()
    server.load(nodes=2, **ENGINE)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(ask, server.sdk(), f"Number {number}", max_tokens=120) for number in range(8)]
        wait_until("all are in replicas", lambda: server.pool()["in_flight"] == 8)
        os.kill(server.engines(llama.program)[0], signal.SIGKILL)
        for answer in answers:
            assert answer.result().choices[0].finish_reason in ("stop", "length")
    server.wait_live(2)


def test_one_that_hangs_is_replaced(llama):
    server = llama(environment={"REPLICA_WATCHDOG_S": "3"})
    server.load(nodes=2, **ENGINE)
    hung = server.engines(llama.program)[0]
    stopped([hung])
    for stream in streams(server, 8, max_tokens=10):
        stream.end()
    wait_gone([hung], 30)
    server.wait_live(2)


def test_restarted_under_load_it_fails_no_request(llama):
    server = llama()
    server.load(nodes=2, **ENGINE)
    before = server.engines(llama.program)
    under_way = streams(server, 8, max_tokens=60)
    for stream in under_way:
        stream.begun.wait(60)
    status, answer = server.admin("POST", f"/clusters/local/pools/{ALIAS}/replicas/local-1/restart")
    assert status == 200, answer
    for stream in under_way:
        stream.end()
    after = server.engines(llama.program)
    assert len(after) == 2 and len(set(before) & set(after)) == 1


def test_it_ends_with_its_agent_and_with_its_pool(llama):
    server = llama()
    server.load(nodes=1, **ENGINE)
    engines = server.engines(llama.program)
    os.kill(server.agents()[0], signal.SIGKILL)
    wait_gone(engines)
    wait_until("it is back", lambda: server.pool()["replicas_live"] == 1, 60)
    engines = server.engines(llama.program)
    status, answer = server.admin("POST", "/clusters/local/unload", {"alias": ALIAS})
    assert status == 200, answer
    wait_gone(engines, 5)


def test_it_outlives_a_server_that_is_started_anew(llama):
    server = llama(environment={"AGENT_GRACE_S": "30"})
    server.load(nodes=1, **ENGINE)
    engines = server.engines(llama.program)
    server.kill()
    config = server.state.parent / "flotilla.yaml"
    from support import Server

    again = Server(server.state.parent, "--config", config, environment={"AGENT_GRACE_S": "30"})
    try:
        again.wait_live(1)
        assert server.engines(llama.program) == engines
        assert ask(again.sdk(), max_tokens=4).choices[0].message.content
    finally:
        again.stop()
    wait_gone(engines)


def test_one_of_ours_and_one_of_theirs_serve_one_alias(llama, start):
    theirs = llama()
    theirs.load(nodes=1, **ENGINE)
    (engine,) = theirs.engines(llama.program)
    server = start(type(theirs), {})
    server.load(nodes=[{"id": "ours"}, {"id": "theirs", "transport": "http", "url": f"http://127.0.0.1:{port_of(engine)}"}],
                context=1024, batch_size=4)
    status = {replica["node"]: replica for replica in server.replicas()}
    assert status["ours"]["engine"] is None and status["theirs"]["engine"] == "llama-server"
    served = {stream.end().served["node"] for stream in streams(server, 8, max_tokens=30)}
    assert served == {"ours", "theirs"}
    assert server.get_json(f"/v1/models/{ALIAS}")["x_flotilla"]["lacks"] == ["repetition_penalty"]
    os.kill(engine, signal.SIGKILL)
    for stream in streams(server, 4, max_tokens=10):
        assert stream.end().served["node"] == "ours"
    server.wait_live(1)
    entry = server.get_json(f"/v1/models/{ALIAS}")["x_flotilla"]
    assert entry["lacks"] == [] and entry["engines"] == []
