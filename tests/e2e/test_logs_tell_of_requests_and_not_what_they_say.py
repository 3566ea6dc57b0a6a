"""Lines as JSON in a file that is moved away at its size; the trace of a request from its client to its replica."""

import json
import os
import signal

import pytest

from support import ALIAS, Server, Stream, run_command, wait_until

SECRET = "abracadabra"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    made = Server(folder, "--log-format", "json", "--log-file", folder / "flotilla.log", "--log-file-bytes", "4096",
                  "--log-files", "200")
    made.folder = folder
    made.load(nodes=1, model="synthetic", alias="synthetic")
    yield made
    made.stop()


def send(server, text=SECRET, headers=None, **fields):
    """The request's id."""
    body = {"model": "synthetic", "max_tokens": 3, "messages": [{"role": "user", "content": text}]} | fields
    _, answered, _ = server.call("POST", "/v1/chat/completions", body, headers)
    return answered["x-request-id"]


def logged(server):
    """All lines, the oldest first."""
    files = sorted(server.folder.glob("flotilla*.log"), key=lambda file: file.stat().st_mtime_ns)
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def line_of(server, request_id):
    (line,) = [line for line in logged(server) if line.get("request_id") == request_id]
    return line


def test_each_request_has_one_line_and_no_line_has_its_words(server):
    good, bad = send(server, headers={"traceparent": PARENT}), send(server, temperature=SECRET)
    line = line_of(server, good)
    assert line["level"] == "info" and line["component"] == "serve" and line["time"].endswith("Z")
    assert line["status"] == 200 and line["pool"] == "synthetic" and line["node"] == "local-1"
    assert line["completion_tokens"] == 3 and line["took_ms"] >= line["queued_ms"] >= 0
    assert line["trace_id"] == TRACE
    assert line_of(server, bad)["status"] == 400 and "trace_id" not in line_of(server, bad)
    runner = wait_until("the runner tells of the trace", lambda: next(
        (text for text in [server.call("GET", "/admin/logs?node=local-1")[2]] if good in text), None))
    assert PARENT in runner
    assert SECRET not in runner and SECRET not in str(logged(server)) and SECRET not in server.log()


def test_no_key_prompt_or_answer_is_in_any_log_whatever_the_form_and_though_a_runner_dies(start):
    server = start(Server, token="the-token-of-this-test")
    server.load(nodes=1)
    secret = server.admin("POST", "/keys", {"name": "ann"})[1]["secret"]
    ours, theirs = server.sdk(api_key=secret), server.anthropic(api_key=secret)
    question = [{"role": "user", "content": f"Tell me a story about {SECRET}."}]
    said = [
        ours.chat.completions.create(model=ALIAS, messages=question, max_tokens=30).choices[0].message.content,
        ours.completions.create(model=ALIAS, prompt=f"Once upon a time {SECRET}", max_tokens=30).choices[0].text,
        ours.responses.create(model=ALIAS, input=f"What is {SECRET}?", max_output_tokens=30).output_text,
        theirs.messages.create(model=ALIAS, messages=question, max_tokens=30).content[0].text,
    ]
    ours.embeddings.create(model=ALIAS, input=SECRET)
    server.call("POST", "/tokenize", {"model": ALIAS, "content": SECRET}, {"x-api-key": secret})
    server.call("POST", "/v1/chat/completions", f'{{"model": "{SECRET}'.encode(), {"x-api-key": secret})
    stream = Stream(ours, f"A long story about {SECRET}", max_tokens=300, extra_body={"ignore_eos": True})
    assert stream.begun.wait(60)
    os.kill(server.runners()[0], signal.SIGKILL)
    said.append(stream.end().text)
    logs = [server.log_file, *sorted((server.state / "agent/logs").iterdir())]
    text = "\n".join(log.read_text(errors="replace") for log in logs)
    assert len(logs) > 1 and "request_id" in text
    for words in (SECRET, secret, "the-token-of-this-test", *(answer.strip()[:25] for answer in said)):
        assert len(words) > 8 and words not in text, words


def test_a_file_is_moved_away_at_its_size(server):
    for number in range(40):
        send(server, model=f"nobody-{number}")
    sizes = [file.stat().st_size for file in server.folder.glob("flotilla*.log")]
    assert len(sizes) > 2 and max(sizes) <= 4096, sizes


def test_no_more_files_are_kept_than_was_said(start, tmp_path):
    server = start(Server, "--log-file", tmp_path / "kept.log", "--log-file-bytes", "4096", "--log-files", "2")
    ids = [send(server, model=f"nobody-{number}") for number in range(150)]
    kept = sorted(tmp_path.glob("kept*.log"))
    assert [file.name for file in kept] == ["kept.1.log", "kept.2.log", "kept.log"]
    assert ids[-1] in kept[-1].read_text() and not any(ids[0] in file.read_text() for file in kept)


@pytest.mark.parametrize("sent, shown", [
    (PARENT, PARENT),
    ("cc" + PARENT[2:] + "-more", PARENT),
    (PARENT + "-more", None),
    (PARENT.upper(), None),
    ("", None),
])
def test_a_trace_is_shown_in_the_timeline_and_a_malformed_one_is_as_none(server, sent, shown):
    record = server.get_json("/admin/requests/" + send(server, headers={"traceparent": sent}))
    traced = [moment["detail"] for moment in record["timeline"] if moment["what"] == "traced"]
    assert traced == ([shown] if shown else []) and record["status"] == 200


def test_what_cannot_be_is_named(tmp_path):
    done = run_command("serve", "--state", tmp_path / "state", "--log-format", "xml")
    assert done.returncode == 2 and '"xml"; it takes one of text, json' in done.stderr, done.stderr
    done = run_command("serve", "--state", tmp_path / "state", "--port", 0, "--log-file", "/proc/none/a.log")
    assert done.returncode == 1 and "/proc/none/a.log" in done.stderr, done.stderr
