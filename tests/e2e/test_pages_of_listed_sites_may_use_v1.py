import pytest

from support import ALIAS, Server, run_command

APP = "https://app.example"
CHAT = {"model": "synthetic", "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]}
ASK = {"Access-Control-Request-Method": "POST",
       "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("cors"), "--cors-origin", APP, "--cors-origin", "http://localhost:5173")
    try:
        server.put_cluster(1)
        status, answer = server.admin("POST", "/clusters/local/load", {"model": "synthetic"})
        assert status == 200, answer
        yield server
    finally:
        server.stop()


def allowed(headers):
    return {name.lower(): value for name, value in headers.items() if name.lower().startswith("access-control-")}


@pytest.mark.parametrize("origin", [APP, "http://localhost:5173"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/v1/messages"])
def test_a_listed_site_may_ask(server, origin, path):
    status, headers, text = server.call("OPTIONS", path, headers={"Origin": origin} | ASK)
    assert (status, text) == (204, "")
    assert allowed(headers) == {
        "access-control-allow-origin": origin, "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": ASK["Access-Control-Request-Headers"], "access-control-max-age": "7200"}
    assert "Origin" in headers.get_all("Vary")


@pytest.mark.parametrize("body, status", [
    (CHAT, 200), (CHAT | {"stream": True}, 200), (CHAT | {"model": "nobody"}, 404), (b"{", 400),
], ids=["whole", "streamed", "unknown", "malformed"])
def test_it_may_read_answers_and_errors(server, body, status):
    answer = server.call("POST", "/v1/chat/completions", body, {"Origin": APP})
    assert answer[0] == status
    headers = allowed(answer[1])
    assert headers.pop("access-control-allow-origin") == APP
    exposed = headers.pop("access-control-expose-headers").lower().split(", ")
    assert {"x-request-id", "retry-after", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-requests"} <= set(exposed)
    assert headers == {}, "no credentials"
    assert answer[1].get_all("Vary") == ["Origin"]


@pytest.mark.parametrize("origin", [
    "https://app.example.evil.example", "https://evil.example", "http://app.example", "https://app.example:8443",
    "https://APP.example", "null", "https://app.example ,https://evil.example"])
def test_no_other_site_may(server, origin):
    status, headers, _ = server.call("OPTIONS", "/v1/chat/completions", headers={"Origin": origin} | ASK)
    assert status == 405 and not allowed(headers)
    _, headers, _ = server.call("POST", "/v1/chat/completions", CHAT, {"Origin": origin})
    assert not allowed(headers) and headers["Vary"] == "Origin"


@pytest.mark.parametrize("path", ["/admin/clusters", "/admin/login", "/metrics", "/", "/v1", "/v1x/models", "/admin/../v1/"])
def test_nothing_but_v1_is_opened(server, path):
    for method in ("OPTIONS", "GET"):
        _, headers, _ = server.call(method, path, headers={"Origin": APP} | ASK)
        assert not allowed(headers)


def test_it_is_off_unless_asked_for(shared):
    status, headers, _ = shared.call("OPTIONS", "/v1/chat/completions", headers={"Origin": APP} | ASK)
    assert status == 405 and not allowed(headers)
    body = {"model": ALIAS, "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    _, headers, _ = shared.call("POST", "/v1/chat/completions", body, {"Origin": APP})
    assert not allowed(headers) and "Vary" not in headers


@pytest.mark.parametrize("value", ["app.example", "https://app.example/", "https://App.example", "https://*.example",
                                   "https://app.example:443", "null"])
def test_what_no_browser_sends_is_named(tmp_path, value):
    done = run_command("serve", "--port", 0, "--state", tmp_path, "--cors-origin", value, timeout=20)
    assert done.returncode == 1
    assert f"--cors-origin: origin '{value}'" in done.stderr and "https://app.example" in done.stderr
