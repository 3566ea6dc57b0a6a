import http.client
import json

import pytest

from support import Server, run_command

TOKEN = {"Authorization": "Bearer correct-horse-battery"}
PROXY, STRANGER = "127.0.0.2", "127.0.0.3"
CHAT = {"model": "nobody", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    token = folder / "token"
    token.write_text("correct-horse-battery\n")
    server = Server(folder, "--admin-token-file", token, "--allow-anonymous", "--trusted-proxy", PROXY,
                    "--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "2001:db8:1::/48")
    yield server
    server.stop()


def call(server, peer, method, path, body=None, headers=None):
    """As from the address `peer`."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30, source_address=(peer, 0))
    headers = {"Content-Type": "application/json", "Host": f"127.0.0.1:{server.port}"} | (headers or {})
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def seen_as(server, peer, headers):
    """Whose request the server took it for."""
    answer, text = call(server, peer, "POST", "/v1/chat/completions", CHAT, headers)
    assert answer.status == 404, text
    identity = answer.headers["x-request-id"]
    _, text = call(server, "127.0.0.1", "GET", f"/admin/requests/{identity}", headers=TOKEN)
    record = json.loads(text)
    assert record["peer"] == record["key"], "without a key the address says whose it is"
    return record["key"]


@pytest.mark.parametrize("headers, client", [
    ({}, PROXY),
    ({"X-Forwarded-For": "198.51.100.7"}, "198.51.100.7"),
    ({"X-Forwarded-For": "1.1.1.1, 198.51.100.7, 10.0.0.3"}, "198.51.100.7"),
    ({"X-Forwarded-For": "2001:db8:2::7, [2001:db8:1::1]:80"}, "2001:db8:2::7"),
    ({"Forwarded": 'for=1.1.1.1, for="[2001:db8:2::7]:4711";proto=https'}, "2001:db8:2::7"),
    ({"X-Forwarded-For": "198.51.100.7, unknown"}, PROXY),
    ({"X-Forwarded-For": "198.51.100.7", "Forwarded": "for=1.1.1.1"}, PROXY),
], ids=str)
def test_a_trusted_proxy_is_believed(server, headers, client):
    assert seen_as(server, PROXY, headers) == client


@pytest.mark.parametrize("headers", [
    {"X-Forwarded-For": "198.51.100.7"}, {"Forwarded": "for=198.51.100.7"}, {"X-Real-IP": "198.51.100.7"},
], ids=str)
def test_nobody_else_is(server, headers):
    assert seen_as(server, STRANGER, headers) == STRANGER


def test_failed_tokens_are_counted_by_client(server):
    wrong = {"Authorization": "Bearer wrong-horse-battery"}

    def status(client):
        return call(server, PROXY, "GET", "/admin/clusters", headers=wrong | {"X-Forwarded-For": client})[0].status

    assert [status("198.51.100.8") for _ in range(11)] == [401] * 10 + [429]
    assert status("198.51.100.9") == 401
    assert status("198.51.100.8, 198.51.100.9") == 401


def test_what_was_done_is_noted_with_the_client(server):
    behind = TOKEN | {"X-Forwarded-For": "198.51.100.10"}
    answer, text = call(server, PROXY, "PUT", "/admin/clusters/noted", {"nodes": []}, behind)
    assert answer.status in (200, 201, 400), text
    _, text = call(server, "127.0.0.1", "GET", "/admin/events", headers=TOKEN)
    assert "the token from 198.51.100.10" in text


def test_a_forwarded_host_is_not_the_host(server):
    for extra in ({"X-Forwarded-Host": "localhost"}, {"Forwarded": "host=localhost"}):
        headers = TOKEN | {"Host": "evil.example"} | extra
        assert call(server, PROXY, "GET", "/admin/clusters", headers=headers)[0].status == 403


def test_without_token_and_key_a_trusted_proxy_opens_nothing(start):
    server = start(Server, "--trusted-proxy", "127.0.0.1")
    assert server.call("GET", "/admin/clusters")[0] == 200
    for client in ("127.0.0.1", "::1", "198.51.100.7"):
        headers = {"X-Forwarded-For": client}
        assert server.call("GET", "/admin/clusters", headers=headers)[0] == 401
        assert server.call("POST", "/v1/chat/completions", CHAT, headers)[0] == 401


@pytest.mark.parametrize("value", ["nowhere", "10.0.0.0/33", "10.0.0.1/8"])
def test_what_is_no_range_is_named(tmp_path, value):
    done = run_command("serve", "--port", 0, "--state", tmp_path, "--trusted-proxy", value, timeout=20)
    assert done.returncode == 1
    assert f"--trusted-proxy: '{value}'" in done.stderr and "such as 10.0.0.0/8" in done.stderr
