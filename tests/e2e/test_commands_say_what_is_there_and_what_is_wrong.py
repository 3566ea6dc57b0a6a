import json
import os
import re
import signal
import subprocess

import pytest

from support import ALIAS, BINARY, MODEL, Server, run_command


def test_from_nothing_to_a_pool_and_back(start):
    server = start(Server)
    assert "no clusters" in server.command("status").stdout
    added = server.command("cluster", "add", "local", "--node", "local*2")
    assert (added.returncode, added.stdout) == (0, "cluster local: 2 nodes\n")
    listed = server.command("cluster", "list").stdout
    assert "local-1" in listed and "local-2" in listed
    assert server.command("model", "list", "local").returncode == 0
    unknown = server.command("model", "list", "none")
    assert (unknown.returncode, unknown.stderr) == (1, 'flotilla: there is no cluster "none"\n')

    loaded = server.command("load", "local", MODEL, "--batch")
    assert loaded.returncode == 0, loaded.stderr
    assert f"{ALIAS}: 2 of 2 replicas ready" in loaded.stdout
    assert "\x1b" not in loaded.stdout  # no bars where nobody looks at a terminal

    shown = server.command("status").stdout
    assert "replica · batch" in shown and shown.count("ready") == 2
    status = json.loads(server.command("status", "--json").stdout)
    assert status["clusters"][0]["pools"][0]["replicas_live"] == 2

    again = server.command("load", "local", MODEL, "--batch")
    assert again.returncode == 0
    refused = server.command("load", "local", MODEL)
    assert refused.returncode == 1 and ALIAS in refused.stderr
    replaced = server.command("load", "local", MODEL, "--replace")
    assert replaced.returncode == 0, replaced.stderr
    assert server.pool()["batch"] is False

    assert server.command("cluster", "remove", "local").returncode == 1  # it serves something
    assert server.command("unload", "local").returncode == 0
    assert server.command("cluster", "remove", "local").returncode == 0
    assert server.get_json("/admin/clusters")["clusters"] == []


@pytest.mark.parametrize("form", [[], ["--json"]], ids=str)
def test_status_is_watched_until_ctrl_c(shared, form):
    watch = subprocess.Popen([BINARY, "status", "--watch", *form, "--server", shared.url], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        seen, lines = 0, []
        while seen < 2:  # each time it tells of the pool
            lines.append(watch.stdout.readline())
            assert lines[-1], "it ended"
            seen += ALIAS in lines[-1]
        watch.send_signal(signal.SIGINT)
        assert watch.wait(20) == 0
    finally:
        watch.kill()
    assert "\x1b" not in "".join(lines), "nobody looks at a terminal"
    if form:
        assert [json.loads(line)["clusters"][0]["pools"][0]["alias"] for line in lines] == [ALIAS] * 2


@pytest.mark.parametrize("arguments, named", [
    (["load", "nowhere", "x.gguf"], "nowhere"),
    (["unload", "local", "not-there"], "not-there"),
    (["cluster", "add", "Bad Name", "--node", "a"], "Bad Name"),
    (["cluster", "add", "lab", "--node", "a=ftp://x"], "ftp://x"),
    (["cluster", "remove", "nowhere"], "nowhere"),
    (["bench", "burst", "not-a-url"], "not-a-url"),
    (["load", "local", "no-such-file.gguf", "--alias", "other"], "no-such-file.gguf"),
])
def test_mistakes_are_named(shared, arguments, named):
    done = shared.command(*arguments)
    assert done.returncode == 1
    assert named in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [["status"], ["cluster", "list"], ["load", "local", "x"], ["unload", "local"]])
def test_nobody_answers(arguments):
    done = run_command(*arguments, "--server", "http://127.0.0.1:9", timeout=20)
    assert done.returncode == 1
    assert "http://127.0.0.1:9" in done.stderr and "flotilla serve" in done.stderr


@pytest.mark.parametrize("arguments", [["no-such-command"], ["load"], ["status", "--colour"], ["bench"]])
def test_wrong_usage_is_2(arguments):
    done = run_command(*arguments, timeout=20)
    assert done.returncode == 2
    assert done.stderr


@pytest.mark.parametrize("flag, value, complaint", [
    ("--weight", "nan", '"nan" is not a number from 0.01 to 100'),
    ("--weight", "0", '"0" is not a number from 0.01 to 100'),
    ("--expires-in-days", "-1", '"-1" is not a number from 0 to 36500'),
    ("--expires-in-days", "nan", '"nan" is not a number from 0 to 36500'),
    ("--expires-in-days", "1e300", '"1e300" is not a number from 0 to 36500'),
    ("--tokens-per-min", "-5", '"-5" is not a number of 0 or more'),
])
def test_a_number_out_of_range_is_named_with_the_range(flag, value, complaint):
    done = run_command("keys", "add", "ann", flag, value, "--server", "http://127.0.0.1:9", timeout=20)
    assert done.returncode == 2
    assert f"{flag}: {complaint}" in done.stderr, done.stderr


def test_the_help_of_every_command_has_examples():
    seen, waiting = set(), [()]
    while waiting:
        path = waiting.pop()
        seen.add(" ".join(path))
        done = run_command(*path, "--help", timeout=20)
        assert done.returncode == 0, path
        assert "Example" in done.stdout and " ".join(("flotilla", *path)) in done.stdout, path
        below = re.search(r"^Subcommands:\n((?:  .*\n|\n)*)", done.stdout, re.M)
        waiting += [(*path, name) for name in re.findall(r"^  ([a-z]\S*)", below[1] if below else "", re.M)]
    assert seen >= {"serve", "runner", "agent", "cluster add", "cluster list", "cluster remove", "load", "unload", "status",
                    "bench burst", "version"}


def test_version():
    told = run_command("version")
    assert told.returncode == 0 and told.stdout.startswith("flotilla ")
    flag = run_command("--version")
    assert (flag.returncode, flag.stdout, flag.stderr) == (0, told.stdout, "")


@pytest.mark.parametrize("knob, value", [("RUNNER_BATCH_SIZE", "many"), ("QUEUE_MAX", "-1")])
def test_bad_knob_is_named(tmp_path, knob, value):
    done = run_command("serve", "--port", 0, "--state", tmp_path, env=os.environ | {knob: value}, timeout=20)
    assert done.returncode == 1
    assert knob in done.stderr and value in done.stderr


def test_what_a_client_wrote_does_not_reach_the_terminal_as_it_is(shared):
    body = {"model": "\x1b[2Jevil\u009b1m", "messages": [{"role": "user", "content": "hi"}]}
    status, headers, _ = shared.call("POST", "/v1/chat/completions", body)
    assert status == 404
    shown = shared.command("request", headers["x-request-id"])
    assert shown.returncode == 0 and "evil" in shown.stdout
    assert "\x1b" not in shown.stdout and "\x9b" not in shown.stdout
    assert "\x1b" not in shared.command("request", "\x1b[2J").stderr
