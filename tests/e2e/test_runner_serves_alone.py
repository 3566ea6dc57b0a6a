import openai
import pytest

from support import ALIAS, MODEL, Process, Runner, Stream, ask, run_command


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """One for all tests here; the last of those that ask it ends it."""
    runner = Runner(tmp_path_factory.mktemp("runner"), "--model", MODEL, "--width", "8")
    try:
        yield runner
    finally:
        runner.stop()


def test_chat_without_a_gateway(runner):
    client = runner.sdk()
    assert ask(client, max_tokens=8).choices[0].message.content
    streams = [Stream(client, f"Story {number}", max_tokens=20, extra_body={"ignore_eos": True})
               for number in range(8)]
    assert {stream.end().usage.completion_tokens for stream in streams} == {20}
    assert [model.id for model in client.models.list().data] == [ALIAS]
    assert runner.call("GET", "/health")[0] == 200


def test_it_trusts_no_header_of_the_gateway(runner):
    body = {"model": ALIAS, "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]}
    status, headers, text = runner.call("POST", "/v1/chat/completions", body,
                                        {"Flotilla-Protocol": "1", "Flotilla-Resume-Bytes": "4"})
    assert status == 200, text
    assert headers["Content-Type"].startswith("application/json")
    assert ": t " not in text


def test_errors_are_openais(runner):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(runner.sdk(), "word " * 9000)
    assert caught.value.code == "context_length_exceeded"


def test_ctrl_c_exits_0(runner):
    stream = Stream(runner.sdk(), "A long story", max_tokens=100, extra_body={"ignore_eos": True})
    stream.begun.wait(30)
    assert runner.stop() == 0
    assert stream.end().usage.completion_tokens == 100


@pytest.mark.parametrize("host, told", [("0.0.0.0", True), ("127.0.0.1", False)])
def test_where_others_reach_it_that_it_asks_nobody_is_told(tmp_path, host, told):
    runner = Process(["runner", "--synthetic", "--port", 0, "--host", host], tmp_path / "log",
                     listening=r" on (http://\S+:\d+)")
    try:
        assert ("asks nobody for a key" in runner.log()) == told
    finally:
        runner.stop()


def test_missing_model_is_named(tmp_path):
    done = run_command("runner", "--model", tmp_path / "gone.gguf", "--port", 0, timeout=30)
    assert done.returncode == 1
    assert "gone.gguf" in done.stderr
