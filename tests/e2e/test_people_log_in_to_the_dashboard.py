"""A browser's way in, at the level of HTTP: a cookie for the token, and what the cookie opens."""

import http.client
import json
import pathlib

import pytest

from support import Server, SlowBody, children_of_all, wait_until

TOKEN = "correct-horse-battery"


class Browser:
    """Sends what a browser would: the cookie, and the page's Origin with what is not a GET."""

    def __init__(self, server, address="127.0.0.1"):
        self.server, self.address, self.cookie = server, address, None

    def open(self, method, path, body=None, headers=None):
        sent = {"Content-Type": "application/json"}
        if method != "GET":
            sent["Origin"] = self.server.url
        if self.cookie:
            sent["Cookie"] = self.cookie
        sent |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60,
                                                source_address=(self.address, 0))
        connection.request(method, path, None if body is None else json.dumps(body),
                           {name: value for name, value in sent.items() if value is not None})
        return connection.getresponse()

    def ask(self, *arguments, **options):
        """Status and text."""
        answer = self.open(*arguments, **options)
        return answer.status, answer.read().decode()

    def log_in(self, token=TOKEN):
        answer = self.open("POST", "/admin/login", {"token": token})
        answer.read()
        given = answer.headers["Set-Cookie"]
        if given:
            self.cookie = given.partition(";")[0]
        return answer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("login"), token=TOKEN)
    try:
        server.load(nodes=1, model="synthetic")
        yield server
    finally:
        server.stop()


@pytest.fixture
def browser(server):
    return Browser(server)


def chat(server):
    alias = server.get_json("/admin/clusters/local/status")["pools"][0]["alias"]
    return {"model": alias, "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}


def test_the_token_gives_a_cookie_that_scripts_and_other_sites_do_not_get(server, browser):
    assert browser.ask("GET", "/admin/clusters")[0] == 401
    refused = browser.log_in("wrong-horse-battery")
    assert refused.status == 401 and refused.headers["Set-Cookie"] is None
    taken = browser.log_in()
    assert taken.status == 204
    name, *rest = taken.headers["Set-Cookie"].split("; ")
    assert name.startswith(f"flotilla_login_{server.port}=") and len(name.partition("=")[2]) >= 40
    assert rest == ["Path=/", "HttpOnly", "SameSite=Strict"]
    by_tls = Browser(server).open("POST", "/admin/login", {"token": TOKEN},
                                  {"Origin": server.url.replace("http:", "https:")})
    assert "; Secure" in by_tls.headers["Set-Cookie"], "the page came by TLS"
    secret = browser.cookie.partition("=")[2]
    for file in server.state.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes() and TOKEN.encode() not in file.read_bytes(), file
    assert secret not in server.log()


def test_a_log_in_opens_administration_metrics_streams_and_chat(server, browser):
    browser.log_in()
    status, made = browser.ask("POST", "/admin/keys", {"name": "so-that-one-exists"})
    assert status == 201
    assert browser.ask("GET", "/metrics")[0] == 200
    assert browser.ask("GET", "/v1/models")[0] == 200
    assert browser.ask("POST", "/v1/chat/completions", chat(server))[0] == 200
    assert browser.open("GET", "/admin/stream").readline().startswith(b"data: {")
    events = json.loads(browser.ask("GET", "/admin/events")[1])["events"]
    assert any(event["who"] == "a log-in from 127.0.0.1" for event in events), events
    nobody = Browser(server)
    for method, path, body in [("GET", "/metrics", None), ("GET", "/v1/models", None), ("GET", "/admin/stream", None),
                               ("POST", "/v1/chat/completions", chat(server))]:
        assert nobody.ask(method, path, body)[0] == 401, path
    assert browser.ask("DELETE", "/admin/keys/" + json.loads(made)["id"])[0] == 204


def test_another_sites_page_changes_nothing_by_it(server, browser):
    browser.log_in()
    key = {"name": "not-made"}
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}", None):
        headers = {"Origin": origin}
        assert browser.ask("POST", "/admin/keys", key, headers)[0] == 403, origin
        assert browser.ask("POST", "/v1/chat/completions", chat(server), headers)[0] == 403, origin
        assert browser.ask("POST", "/admin/logout", {}, headers)[0] == 403, origin
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        headers = {"Content-Type": kind}
        assert browser.ask("POST", "/admin/keys", key, headers)[0] == 415, kind
        assert browser.ask("POST", "/admin/login", {"token": TOKEN}, headers)[0] == 415, kind
    assert "not-made" not in browser.ask("GET", "/admin/keys")[1]


def test_logging_out_ends_it_and_what_it_follows(server, browser):
    browser.log_in()
    followed = browser.open("GET", "/admin/stream")
    assert followed.readline().startswith(b"data: {")
    gone = browser.open("POST", "/admin/logout", {})
    assert gone.status == 204 and "Max-Age=0" in gone.headers["Set-Cookie"]
    followed.read()  # to its end, which comes
    assert browser.ask("GET", "/admin/clusters")[0] == 401
    assert browser.ask("POST", "/admin/logout", {})[0] == 204


@pytest.mark.parametrize("path", ["/admin/keys", "/v1/chat/completions"])
def test_logging_out_ends_what_is_still_being_sent(server, browser, path):
    browser.log_in()
    sent = SlowBody(server, path, json.dumps(chat(server) if path.startswith("/v1") else {"name": "late"}).encode(),
                    {"Origin": server.url, "Cookie": browser.cookie})
    assert browser.ask("POST", "/admin/logout")[0] == 204
    assert sent.rest() == 401
    assert "late" not in [key["name"] for key in server.get_json("/admin/keys")["keys"]]


def test_ten_wrong_tokens_close_an_address_for_a_minute(server):
    guesser = Browser(server, address="127.0.0.2")
    for _ in range(10):
        assert guesser.log_in("guess-after-guess").status == 401
    closed = guesser.log_in()
    assert closed.status == 429 and 1 <= int(closed.headers["Retry-After"]) <= 60
    assert Browser(server, address="127.0.0.3").log_in().status == 204


def test_the_audit_is_of_those_who_were_let_in(server, browser):
    def rows(action):
        events = json.loads(server.call("GET", "/admin/events?limit=10000")[2])["events"]
        return [(event["who"], event["status"]) for event in events if event["action"] == f"POST /admin/{action}"]

    out = len(rows("logout"))
    for _ in range(20):
        assert browser.ask("POST", "/admin/logout", {})[0] == 204
    assert len(rows("logout")) == out, "nobody was logged in"
    browser.log_in()
    assert browser.ask("POST", "/admin/logout", {})[0] == 204
    assert len(rows("logout")) == out + 1
    guesser = Browser(server, address="127.0.0.4")
    for number in range(12):
        assert guesser.log_in(f"guess-after-guess-{number}").status == (401 if number < 10 else 429)
    assert rows("login").count(("127.0.0.4", 401)) == 1, "one line an address and minute"


def test_a_wrong_token_in_a_header_is_in_the_audit_and_in_the_log(server):
    guesser = Browser(server, address="127.0.0.5")
    wrong = [{"Authorization": "Bearer guess-after-guess"}, {"x-api-key": "another-guess"}]
    for headers in wrong * 3:
        assert guesser.ask("GET", "/admin/keys", headers=headers)[0] == 401
    assert guesser.ask("POST", "/admin/clusters/lab/doctor", {}, headers=wrong[0])[0] == 401

    def rows():
        events = json.loads(server.call("GET", "/admin/events?limit=10000")[2])["events"]
        return [(event["action"], event["status"]) for event in events if event["who"] == "127.0.0.5"]

    wait_until("it is in the audit", rows)
    assert rows() == [("GET /admin/keys", 401)], "one line an address and minute"
    assert server.log().count("a wrong admin token from 127.0.0.5") == 1
    assert "a wrong admin token from 127.0.0.5: GET /admin/keys" in server.log()
    assert "guess" not in json.dumps(rows()) + server.log()

    nobody = Browser(server, address="127.0.0.6")
    assert nobody.ask("GET", "/admin/keys")[0] == 401
    assert nobody.ask("GET", "/v1/models", headers=wrong[0])[0] in (200, 401)
    assert nobody.ask("GET", "/admin/keys")[0] == 401
    assert "127.0.0.6" not in server.call("GET", "/admin/events?limit=10000")[2], "no guess at /admin"
    assert "a wrong admin token from 127.0.0.6" not in server.log()


def test_another_ports_page_reads_nothing_by_it(browser):
    browser.log_in()
    for site in ("cross-site", "same-site"):
        for path in ("/admin/clusters", "/metrics", "/v1/models"):
            assert browser.ask("GET", path, headers={"Sec-Fetch-Site": site})[0] == 403, (site, path)
    assert browser.ask("GET", "/admin/clusters", headers={"Sec-Fetch-Site": "same-origin"})[0] == 200


@pytest.mark.parametrize("body, words", [({}, "token"), ({"token": 7}, "token"), ({"token": TOKEN, "x": 1}, "x")])
def test_a_wrong_body_is_named(browser, body, words):
    status, text = browser.ask("POST", "/admin/login", body)
    assert status == 400 and words in json.loads(text)["detail"]


def test_without_a_token_there_is_nothing_to_log_in_with(shared):
    status, text = Browser(shared).ask("POST", "/admin/login", {"token": TOKEN})
    assert status == 409 and "--admin-token-file" in json.loads(text)["detail"]


def test_no_secret_is_where_others_look(server, browser):
    """Token, cookie, an API key and a prompt: in no log, metric, record, argument, environment or error."""
    assert browser.log_in().status == 204
    status, answer = server.admin("POST", "/keys", {"name": "ann"})
    assert status == 201, answer
    prompt = "a secret that only Ann knows"
    ask = chat(server) | {"messages": [{"role": "user", "content": prompt}]}
    status, headers, _ = server.call("POST", "/v1/chat/completions", ask,
                                     {"Authorization": f"Bearer {answer['secret']}"})
    assert status == 200
    wrong = server.call("POST", "/v1/chat/completions", ask, {"Authorization": "Bearer " + answer["secret"][:-1] + "x"})
    assert wrong[0] == 401
    secrets = [TOKEN, browser.cookie.partition("=")[2], answer["secret"], prompt]
    pids = [server.pid, *server.runners(), *(pid for pid in children_of_all()[server.pid])]
    seen = {"log": server.log(), "error": wrong[2], "metrics": server.call("GET", "/metrics")[2],
            "record": server.call("GET", "/admin/requests/" + headers["x-request-id"])[2],
            "events": server.call("GET", "/admin/events")[2], "keys": server.call("GET", "/admin/keys")[2],
            "settings": server.call("GET", "/admin/settings")[2]}
    seen |= {f"{what} of {pid}": pathlib.Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace")
             for pid in pids for what in ("cmdline", "environ")}
    seen |= {str(file): file.read_bytes().decode(errors="replace")
             for file in server.state.rglob("*") if file.is_file()}
    assert len(pids) >= 3 and len(seen) > 12
    found = [(place, secret) for place, text in seen.items() for secret in secrets if secret in text]
    assert not found, found
