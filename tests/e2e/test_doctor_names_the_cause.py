"""flotilla doctor with real servers: what a test of facts alone cannot show. (src/gateway/diagnosis_test.cpp has the
other troubles.)"""

import http.server
import os
import signal
import socket
import threading

from certificates import Authority
from support import Server, run_command, wait_until


def doctor(server, *arguments):
    return server.command("doctor", *arguments)


def test_a_server_without_trouble(shared):
    done = doctor(shared)
    assert done.returncode == 0, done.stdout + done.stderr
    for check in ("link", "version", "memory", "replica of", "pool ", "model ", "state", "open files"):
        assert check in done.stdout, check
    assert "failure" not in done.stdout
    assert doctor(shared, "nobody").returncode == 1 and "no cluster" in doctor(shared, "nobody").stderr


def test_nothing_declared_and_nothing_loaded(start):
    server = start(Server)
    done = doctor(server)
    assert done.returncode == 0 and "no clusters; add one with: flotilla cluster add" in done.stdout, done
    server.put_cluster([{"id": "far", "transport": "http", "url": "http://127.0.0.1:9/v1"}], "lab")
    assert "flotilla load lab MODEL.gguf --batch" in doctor(server).stdout
    # A server of its own that does not answer.
    server.admin("POST", "/clusters/lab/load", {"model": "m", "alias": "m", "wait": False})
    wait_until("it is seen", lambda: "start that server" in doctor(server).stdout)
    assert doctor(server).returncode == 1


def test_a_replica_that_crashes_again_and_again(start):
    server = start(Server)
    server.load(nodes=1, model="synthetic", alias="m")
    for times in range(1, 4):
        (runner,) = wait_until("it runs", lambda: server.runners() if server.replicas("m")[0]["live"] else None)
        os.kill(runner, signal.SIGSEGV)
        wait_until("it is back", lambda: server.replicas("m")[0]["restarts"] == times and
                   server.replicas("m")[0]["live"])
    done = doctor(server)
    assert "came back 3 times" in done.stdout and "SIGSEGV" in done.stdout, done.stdout
    assert "/admin/logs?node=local-1&replica=m" in done.stdout


def test_nobody_at_that_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        done = run_command("doctor", "--server", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 1 and "start one with `flotilla serve`" in done.stderr, done.stderr


def test_another_program_at_that_address():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as other:
        other.RequestHandlerClass.log_message = lambda *_: None
        threading.Thread(target=other.serve_forever, daemon=True).start()
        done = run_command("doctor", "--server", f"http://127.0.0.1:{other.server_port}")
        other.shutdown()
    assert done.returncode == 1 and "may be no flotilla server: is the port right?" in done.stderr, done.stderr


def test_no_token_and_the_wrong_one(start, tmp_path):
    server = start(Server, token="the-right-token")
    assert doctor(server).returncode == 0
    done = run_command("doctor", "--server", server.url)
    assert done.returncode == 1 and "the admin token is needed" in done.stderr, done.stderr
    wrong = tmp_path / "wrong"
    wrong.write_text("the-wrong-token\n")
    done = run_command("doctor", "--server", server.url, "--admin-token-file", wrong)
    assert done.returncode == 1 and "the admin token is wrong; it is in the server's" in done.stderr, done.stderr


def test_tls_where_there_is_none(shared):
    done = run_command("doctor", "--server", shared.url.replace("http:", "https:"))
    assert done.returncode == 1 and f"speaks no TLS: --server {shared.url}" in done.stderr, done.stderr


def test_plain_where_there_is_tls_and_an_unknown_authority(start, tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("name")
    server = start(Server, "--tls-cert", certificate, "--tls-key", key, tls=authority.context())
    done = run_command("doctor", "--server", server.url.replace("https:", "http:"))
    assert done.returncode == 1 and "this port speaks TLS; use https:// to reach it" in done.stderr, done.stderr
    done = run_command("doctor", "--server", server.url)
    assert done.returncode == 1 and "of an authority that this machine does not know" in done.stderr, done.stderr
