import pathlib
import re
import socket

import pytest

from support import ALIAS, Server, children_of_all, command_line, run_command

CHAT = {"model": ALIAS, "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_loopback_names_are_served(shared, name):
    headers = {"Host": f"{name}:{shared.port}"}
    assert shared.call("GET", "/admin/clusters", headers=headers)[0] == 200
    assert shared.call("POST", "/v1/chat/completions", CHAT, headers)[0] == 200


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example"},
    {"X-Forwarded-For": "10.0.0.1"},
    {"Forwarded": "for=10.0.0.1"},
    {"Via": "1.1 proxy"},
], ids=str)
def test_rebinding_and_proxies(shared, headers):
    assert shared.call("GET", "/admin/clusters", headers=headers)[0] in (401, 403)
    assert shared.call("POST", "/v1/chat/completions", CHAT, headers)[0] in (401, 403)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/tokenize", "/admin/clusters"])
def test_who_may_not_ask_sends_no_body(shared, path):
    """The answer comes while all of the body is still to be sent."""
    head = (f"POST {path} HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\n"
            "Expect: 100-continue\r\nContent-Length: 30000000\r\n\r\n")
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65536).decode()
    assert answer.startswith("HTTP/1.1 403 ") and "Connection: close" in answer and "evil.example" in answer


def test_a_body_that_anybody_may_send_is_small(shared):
    body = b'{"token":"' + b"x" * 20_000 + b'"}'
    assert shared.call("POST", "/admin/login", body)[0] == 413
    assert shared.call("POST", "/nothing/there", body)[0] == 413
    assert shared.call("POST", "/nothing/there", {})[0] == 404


def test_other_sites_cannot_administer(shared):
    own = {"Origin": shared.url}
    assert shared.call("GET", "/admin/clusters", headers=own)[0] == 200
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{shared.port + 1}"):
        assert shared.call("GET", "/admin/clusters", headers={"Origin": origin})[0] == 403


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", None])
def test_form_posts_are_refused(shared, kind):
    headers = {"Content-Type": kind}
    assert shared.call("POST", "/admin/clusters/local/unload", {"alias": ALIAS}, headers)[0] == 415
    assert shared.call("POST", "/v1/chat/completions", CHAT, headers)[0] == 415
    assert shared.pool()["replicas_live"] == 2


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/health"])
def test_health_is_open(shared, path):
    assert shared.call("GET", path, headers={"Host": "elsewhere"})[0] == 200


def test_another_address_needs_a_token(tmp_path):
    done = run_command("serve", "--host", "0.0.0.0", "--port", 0, "--state", tmp_path, timeout=20)
    assert done.returncode == 1
    assert "--admin-token-file" in done.stderr


def test_admin_token_is_asked_for_and_taken(start, tmp_path):
    token = tmp_path / "token"
    token.write_text("correct-horse-battery\n")
    server = start(Server, "--admin-token-file", token)
    assert server.call("GET", "/admin/clusters")[0] == 401
    assert server.call("GET", "/admin/clusters", headers={"Authorization": "Bearer wrong-horse-battery"})[0] == 401
    right = {"Authorization": "Bearer correct-horse-battery"}
    assert server.call("GET", "/admin/clusters", headers=right)[0] == 200
    refused = server.command("cluster", "list")
    assert refused.returncode == 1 and "token" in refused.stderr
    assert server.command("cluster", "list", "--admin-token-file", token).returncode == 0


def test_failed_tokens_are_counted(start, tmp_path):
    token = tmp_path / "token"
    token.write_text("correct-horse-battery\n")
    server = start(Server, "--admin-token-file", token)
    wrong = {"Authorization": "Bearer wrong-horse-battery"}
    statuses = [server.call("GET", "/admin/clusters", headers=wrong)[0] for _ in range(11)]
    assert statuses == [401] * 10 + [429]


def test_no_process_of_ours_leaves_a_core_dump(shared):
    pids = [shared.pid, *shared.runners()]
    pids += [pid for pid in children_of_all()[shared.pid] if command_line(pid)[1:2] == ["agent"]]
    assert len(pids) == 4
    for pid in pids:
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        assert re.search(r"^Max core file size +0 +0 ", limits, re.M), limits
