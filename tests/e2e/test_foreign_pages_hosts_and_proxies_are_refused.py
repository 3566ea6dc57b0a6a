import http.client
import os
import pathlib
import re
import socket
import subprocess

import pytest

from support import ALIAS, BINARY, ROOT, Server, children_of_all, command_line, run_command

TOKEN = "correct-horse-battery"

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
    {"X-Real-IP": "10.0.0.1"},
    {"CF-Connecting-IP": "10.0.0.1"},
    {"Fly-Client-IP": "10.0.0.1"},
    {"X-Original-Host": "evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Host": "[::1].evil.example"},
    {"Host": "127.0.0.1:1; Domain=evil"},
], ids=str)
def test_rebinding_and_proxies(shared, headers):
    assert shared.call("GET", "/admin/clusters", headers=headers)[0] in (401, 403)
    assert shared.call("GET", "/v1/models", headers=headers)[0] in (401, 403)
    assert shared.call("GET", "/metrics", headers=headers)[0] in (401, 403)
    assert shared.call("POST", "/v1/chat/completions", CHAT, headers)[0] in (401, 403)


def raw(server, head):
    """The status of the answer to a head as it stands."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode())
        return int(connection.makefile("rb").readline().split()[1])


def test_http_1_0_is_a_proxys_way(shared):
    for path in ("/admin/clusters", "/v1/models", "/metrics"):
        assert raw(shared, f"GET {path} HTTP/1.0\nHost: 127.0.0.1\n\n") == 401, path
    assert raw(shared, "GET /livez HTTP/1.0\n\n") == 200


def test_two_origins_are_a_malformed_request(shared):
    for path in ("/admin/clusters", "/v1/models"):
        origins = f"Origin: {shared.url}\nOrigin: http://evil.example\n"
        assert raw(shared, f"GET {path} HTTP/1.1\nHost: 127.0.0.1:{shared.port}\n{origins}Connection: close\n\n") == 400


def admin_routes():
    """Every pattern of a route of /admin that stands in the gateway's sources, with its methods."""
    sources = "".join(file.read_text() for file in (ROOT / "src/gateway").glob("routes_*.cpp"))
    patterns = set(re.findall(r'"(/admin/[^"]+)"', sources))
    assert len(patterns) > 30
    return sorted(re.sub(r"\{\w+\}", "none", pattern) for pattern in patterns)


def test_without_the_token_no_admin_route_tells_what_there_is(guarded):
    told = {}
    for path in admin_routes():
        if path in ("/admin/login", "/admin/logout"):
            continue
        for method in ("GET", "POST", "PUT", "DELETE"):
            status = guarded.call(method, path, headers={"Content-Type": "application/json", "Authorization": None})[0]
            if status not in (401, 403, 405):
                told[method, path] = status
    assert not told


def test_answers_are_not_kept_nor_guessed_at(shared):
    for path in ("/admin/clusters", "/v1/models", "/metrics", "/admin/clusters/none", "/v1/models/none"):
        _, headers, _ = shared.call("GET", path)
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store", path


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


@pytest.mark.parametrize("leave", [[], ["--allow-anonymous"]], ids=str)
def test_another_address_needs_a_token(tmp_path, leave):
    done = run_command("serve", "--host", "0.0.0.0", *leave, "--port", 0, "--state", tmp_path, timeout=20)
    assert done.returncode == 1
    assert "--admin-token-file" in done.stderr


def test_with_a_token_alone_it_needs_keys_or_leave(start, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    open_to_all = ["--host", "0.0.0.0", "--admin-token-file", token]
    done = run_command("serve", *open_to_all, "--port", 0, "--state", tmp_path / "state", timeout=20)
    assert done.returncode == 1
    assert "flotilla keys add" in done.stderr and "--allow-anonymous" in done.stderr
    server = start(Server, *open_to_all, "--allow-anonymous")
    asked = {"Host": "elsewhere.example", "X-Forwarded-For": "198.51.100.7"}
    assert server.call("GET", "/v1/models", headers=asked)[0] == 200, "from anywhere, by any name and way"
    assert server.call("GET", "/admin/clusters", headers=asked)[0] == 403
    assert server.call("GET", "/metrics", headers=asked)[0] == 401


def test_unless_told_otherwise_it_listens_on_127_0_0_1_port_8000_alone(shared, tmp_path):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", shared.port), timeout=30)
    socket.create_connection(("127.0.0.1", shared.port), timeout=30).close()
    shown = run_command("config", "show", cwd=tmp_path).stdout
    assert re.search(r"^host +127\.0\.0\.1 +default", shown, re.M), shown
    assert re.search(r"^port +8000 +default", shown, re.M), shown


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with an admin token, which these tests do not send unless they say so."""
    server = Server(tmp_path_factory.mktemp("guarded"), token=TOKEN)
    server.headers = {}
    try:
        yield server
    finally:
        server.stop()


def test_admin_token_is_asked_for_and_taken(guarded):
    server, token = guarded, guarded.token_file
    assert server.call("GET", "/admin/clusters")[0] == 401
    assert server.call("GET", "/admin/clusters", headers={"Authorization": "Bearer wrong-horse-battery"})[0] == 401
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert server.call("GET", "/admin/clusters", headers=right)[0] == 200
    refused = server.command("cluster", "list")
    assert refused.returncode == 1 and "token" in refused.stderr
    assert server.command("cluster", "list", "--admin-token-file", token).returncode == 0


def from_address(server, address, path, secret):
    """The status of a GET by a peer of its own, so that no other test's failures count."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60, source_address=(address, 0))
    connection.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
    return connection.getresponse().status


@pytest.mark.parametrize("number, path", [(1, "/admin/clusters"), (2, "/metrics"), (3, "/v1/models")])
def test_failed_tokens_are_counted_wherever_they_are_tried(guarded, number, path):
    # As soon as there is a key /v1 asks for a secret too.
    key = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    assert guarded.call("POST", "/admin/keys", {"name": "one"}, key)[0] in (201, 409)
    address = f"127.0.2.{number}"
    statuses = [from_address(guarded, address, path, f"guess-{guess}") for guess in range(11)]
    assert statuses == [401] * 10 + [429]
    for place in ("/admin/clusters", "/metrics", "/v1/models"):
        assert from_address(guarded, address, place, TOKEN) == 429, f"{place}: else a hit would show"
        assert from_address(guarded, "127.0.2.9", place, TOKEN) == 200


def test_a_token_that_others_can_read_is_told_of(guarded, start, tmp_path):
    assert "chmod 600" in guarded.log()
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    server = start(Server, "--admin-token-file", token)
    assert "chmod 600" not in server.log()
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in server.state.iterdir() if file.is_file()}
    assert set(modes) >= {"state.db", "state.db-wal", "state-id"}
    assert {name: mode for name, mode in modes.items() if int(mode, 8) & 0o077} == {}


def test_a_token_file_that_the_environment_names_is_named_to_nothing_below(start, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    server = start(Server, environment={"FLOTILLA_ADMIN_TOKEN_FILE": str(token)})
    assert server.call("GET", "/admin/clusters")[0] == 401
    server.headers = {"Authorization": f"Bearer {TOKEN}"}
    server.load(nodes=1, model="synthetic")
    pids = [*children_of_all()[server.pid], *server.runners()]
    assert len(pids) >= 2
    for pid in pids:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        assert b"PATH=" in environment and b"ADMIN_TOKEN" not in environment, command_line(pid)


@pytest.mark.parametrize("file, folder, culprit", [(0o660, 0o755, "token"), (0o602, 0o755, "token"), (0o600, 0o775, "kept")])
def test_a_token_that_others_can_write_is_refused(start, tmp_path, file, folder, culprit):
    kept = tmp_path / "kept"
    kept.mkdir()
    token = kept / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(file)
    kept.chmod(folder)
    done = run_command("serve", "--admin-token-file", token, "--port", 0, "--state", tmp_path / "state", timeout=20)
    assert done.returncode == 1
    assert f"may write {tmp_path / 'kept' / 'token' if culprit == 'token' else kept} (mode" in done.stderr
    assert "chmod go-w" in done.stderr
    kept.chmod(0o1777)
    token.chmod(0o600)
    start(Server, "--admin-token-file", token)


@pytest.mark.parametrize("name, complaint", [("/dev/zero", "neither a file nor a pipe"), ("long", "more than 4096 bytes")])
def test_a_token_that_has_no_end_is_refused(shared, tmp_path, name, complaint):
    token = tmp_path / name
    if name == "long":
        token.write_text("x" * 5000)
        token.chmod(0o600)
    for command in (("serve", "--port", 0, "--state", tmp_path / "state"), ("status", "--server", shared.url)):
        done = run_command(*command, "--admin-token-file", token, timeout=20)
        assert done.returncode == 1
        assert f"{token} " in done.stderr and complaint in done.stderr


def test_a_token_may_come_out_of_a_pipe(guarded, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    listing = f"{BINARY} cluster list --server {guarded.url} --admin-token-file <(cat {token})"
    done = subprocess.run(["bash", "-c", listing], text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stderr == ""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    command = [BINARY, "serve", "--admin-token-file", pipe, "--port", "0", "--state", tmp_path / "state"]
    with subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as waiting:
        try:
            said = next(line for line in waiting.stderr if "waiting for the admin token" in line)
            assert str(pipe) in said
            pipe.write_text("short\n")
            assert "has 5 characters" in waiting.stderr.read()
            assert waiting.wait(timeout=20) == 1
        finally:
            waiting.kill()


def test_no_process_of_ours_leaves_a_core_dump(shared):
    pids = [shared.pid, *shared.runners()]
    pids += [pid for pid in children_of_all()[shared.pid] if command_line(pid)[1:2] == ["agent"]]
    assert len(pids) == 4
    for pid in pids:
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        assert re.search(r"^Max core file size +0 +0 ", limits, re.M), limits
