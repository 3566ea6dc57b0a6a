import os
import pathlib
import signal
import sys

import openai
import pytest

from checkpoint import make_checkpoint
from conftest import FAKE, Pool, page_allowed, stopped, streams, wait_gone
from support import Stream, ask, wait_until

ALIAS = "tiny-random"


def test_a_folder_is_refused_where_its_engine_is_not_configured(start, folder):
    server = start(Pool, {})
    server.put_cluster(1)
    status, answer = server.admin("POST", "/clusters/local/load", {"model": str(folder), "batch": True})
    assert status == 422, answer
    assert "model folder" in answer["detail"] and "engines: {vllm: {}}" in answer["detail"]


def test_a_folder_picks_its_engine_alias_and_footprint(start, mlx, folder):
    # A Mac takes mlx; elsewhere the folder is vllm's, and here that is the same program.
    words = (f"[{mlx.program}, --model, '{{model}}', --port, '{{port}}', --decode-concurrency, '{{batch_size}}',"
             " --prompt-concurrency, '{prefill_batch}', '--allowed-origins=']")
    server = start(Pool, {"vllm": f"{{command: {words}, body_model: default_model, lacks: [n]}}"})
    answer = server.load(nodes=1, model=str(folder))
    assert answer["alias"] == ALIAS and answer["batch"] is True, answer
    assert answer["replicas"][0]["engine"] == "vllm"
    report = server.get_json(f"/admin/clusters/local/preflight?model={folder}&batch=true")
    node = report["nodes"][0]
    size = (folder / "model.safetensors").stat().st_size
    assert node["estimated"] and node["fits"] and node["family"] == "llama" and node["advice"] == ""
    assert node["weights_bytes"] >= size and node["need_bytes"] >= 1.15 * size + node["kv_bytes"] - 1
    assert "(estimated)" in node["verdict"]


def test_it_answers_as_our_own_do(mlx, folder):
    server = mlx()
    answer = server.load(nodes=1, model=str(folder), engine="mlx", batch_size=4)
    assert answer["batch"] is True and answer["alias"] == ALIAS
    whole = ask(server.sdk(), model=ALIAS, max_tokens=8, temperature=0, seed=openai.omit)
    assert whole.model == ALIAS and len(whole.choices[0].message.content) == 8
    assert whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 8
    stream = Stream(server.sdk(), "Hello", model=ALIAS, max_tokens=8).end()
    assert stream.usage.completion_tokens == 8 and stream.served["node"] == "local-1"
    entry = server.get_json(f"/v1/models/{ALIAS}")["x_flotilla"]
    assert "response_format" in entry["lacks"] and not entry["supports_json_schema"]
    for field, value in (("n", 2), ("logprobs", True), ("response_format", {"type": "json_object"})):
        with pytest.raises(openai.BadRequestError) as caught:
            ask(server.sdk(), model=ALIAS, **{field: value})
        assert caught.value.param == field and "mlx" in caught.value.message
    (engine,) = server.engines("mlx_lm.server")
    assert page_allowed(engine) not in ("*", "http://elsewhere.example")


def test_killed_hung_and_restarted_under_load(mlx, folder):
    server = mlx(environment={"REPLICA_WATCHDOG_S": "3"})
    server.load(nodes=2, model=str(folder), engine="mlx", batch_size=4)
    options = {"alias": ALIAS, "seed": openai.omit}

    under_way = streams(server, 6, max_tokens=2000, **options)
    for stream in under_way:
        stream.begun.wait(60)
    killed = server.engines("mlx_lm.server")[0]
    os.kill(killed, signal.SIGKILL)
    late = streams(server, 4, max_tokens=50, **options)
    for stream in under_way:
        stream.join(120)
        assert stream.finish or "lost in the middle" in str(stream.error)
    assert any(stream.finish for stream in under_way)
    for stream in late:
        stream.end()
    server.wait_live(2, alias=ALIAS)

    hung = server.engines("mlx_lm.server")[0]
    stopped([hung])
    for stream in streams(server, 6, max_tokens=50, **options):
        stream.end()
    wait_gone([hung], 30)
    server.wait_live(2, alias=ALIAS)

    under_way = streams(server, 6, max_tokens=1000, **options)
    for stream in under_way:
        stream.begun.wait(60)
    status, answer = server.admin("POST", f"/clusters/local/pools/{ALIAS}/replicas/local-1/restart")
    assert status == 200, answer
    for stream in under_way:
        stream.end()
    server.wait_live(2, alias=ALIAS)


def test_what_an_engine_started_ends_with_its_agent_though_it_takes_no_notice(start, folder):
    script = f'trap "" TERM; {sys.executable} {FAKE} {{port}} & wait'
    server = start(Pool, {"stubborn": f"{{command: [sh, -c, '{script}']}}"})
    server.load(nodes=1, model=str(folder), engine="stubborn", batch=False)
    engines = server.engines(FAKE)
    assert len(engines) == 1
    os.kill(server.agents()[0], signal.SIGKILL)
    wait_gone(engines, 30)


def test_a_folder_with_a_module_of_its_own_is_warned_of(start, tmp_path):
    folder = make_checkpoint(tmp_path / "own-module", model_file="model.py")
    server = start(Pool, {"vllm": "{}"})
    server.put_cluster(1)
    node = server.get_json(f"/admin/clusters/local/preflight?model={folder}")["nodes"][0]
    assert "model.py" in node["advice"] and "without a bundled module" in node["advice"]


def test_one_that_listens_before_it_has_loaded_is_waited_for_while_it_grows(start, tmp_path):
    folder = make_checkpoint(tmp_path / "Tiny-Random-Q6")
    with (folder / "model.safetensors").open("r+b") as weights:
        weights.truncate(500 << 20)  # what it may grow to; it takes no room on the disk
    server = start(Pool, {"late": f"{{command: [{sys.executable}, {FAKE.with_name('loads_late.py')}, '{{port}}']}}"})
    answer = server.load(nodes=1, model=str(folder), engine="late", batch=False, force=True)
    assert answer["replicas"][0]["attempts"] <= 1 and answer["replicas"][0]["restarts"] == 0
    assert Stream(server.sdk(), "Hello", model=ALIAS).end().text == "aye"


def test_one_that_fails_two_at_once_is_no_batch(start, folder):
    server = start(Pool, {"single": f"{{command: [{sys.executable}, {FAKE}, '{{port}}']}}"})
    answer = server.load(nodes=1, model=str(folder), engine="single")
    assert answer["batch"] is False
    assert "two requests at the same time" in answer["batch_reason"] and "arange()" in answer["batch_reason"]
    pool = server.pool(ALIAS)
    assert pool["batch"] is False and pool["batch_size"] == 1
    for stream in streams(server, 5, alias=ALIAS):
        assert stream.end().text == "aye"


def test_it_runs_in_the_folder_that_its_description_names(start, folder):
    server = start(Pool, {"here": f"{{command: [{sys.executable}, {FAKE.name}, '{{port}}'], cwd: {FAKE.parent}}}"})
    server.load(nodes=1, model=str(folder), engine="here", batch=False)
    (engine,) = server.engines(FAKE.name)
    assert os.readlink(f"/proc/{engine}/cwd") == str(FAKE.parent)


def test_one_whose_port_another_program_took_is_started_at_another_port_before_the_load_is_answered(
        start, folder, tmp_path):
    script = (f'mkdir {tmp_path}/unlucky && echo "bind: address already in use" >&2 && exit 1;'
              f' exec {sys.executable} {FAKE} {{port}}')
    server = start(Pool, {"unlucky": f"{{command: [sh, -c, '{script}']}}"})
    server.load(nodes=1, model=str(folder), engine="unlucky", batch=False)
    assert "another program took 127.0.0.1:" in server.log()
    assert Stream(server.sdk(), "Hello", model=ALIAS).end().text == "aye"


def test_it_is_started_for_as_many_as_a_runner_would_be(start, folder):
    words = f"[{sys.executable}, {FAKE}, '{{port}}']"
    server = start(Pool, {"single": f"{{command: {words}, env: {{ROOM: '{{batch_size}} {{prefill_batch}}'}}}}"})
    for load, room in (({"batch_size": 6}, "6 4"), ({"batch_size": 2}, "2 2"), ({"batch": False}, "1 1")):
        server.load(nodes=1, model=str(folder), engine="single", **load)
        (engine,) = server.engines(FAKE)
        assert f"ROOM={room}".encode() in pathlib.Path(f"/proc/{engine}/environ").read_bytes().split(b"\0")
        status, answer = server.admin("POST", "/clusters/local/unload", {"alias": ALIAS})
        assert status == 200, answer


def test_it_ends_with_its_agent(mlx, folder):
    server = mlx()
    server.load(nodes=1, model=str(folder), engine="mlx")
    engines = server.engines("mlx_lm.server")
    assert engines
    os.kill(server.agents()[0], signal.SIGKILL)
    wait_gone(engines)
    wait_until("it is back", lambda: server.pool(ALIAS)["replicas_live"] == 1, 90)
