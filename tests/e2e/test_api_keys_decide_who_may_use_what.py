import concurrent.futures
import json
import secrets
import threading
import time

import openai
import pytest

from support import ALIAS, Server, SlowBody, Stream, ask, wait_until

HELLO = {"role": "user", "content": "Hello"}
SMALL = {"max_tokens": 8, "extra_body": {"ignore_eos": True}}


@pytest.fixture
def server(loaded):
    """It has no key yet; those that a test makes go with it."""
    yield loaded
    for key in loaded.get_json("/admin/keys")["keys"]:
        assert loaded.admin("DELETE", f"/keys/{key['id']}")[0] == 204


def make_key(server, name, **settings):
    status, answer = server.admin("POST", "/keys", {"name": name} | settings)
    assert status == 201, answer
    return answer


def with_key(server, key):
    return server.sdk(api_key=key["secret"])


def test_a_key_is_needed_as_soon_as_one_exists(server):
    ask(server.sdk(), **SMALL)
    key = make_key(server, "first")
    assert key["secret"].startswith("fl-") and len(key["secret"]) == 43
    with pytest.raises(openai.AuthenticationError) as refused:
        ask(server.sdk(), **SMALL)
    assert refused.value.code == "invalid_api_key"
    ask(with_key(server, key), **SMALL)
    assert server.call("GET", "/v1/models")[0] == 401
    assert server.call("GET", "/v1/models", headers={"x-api-key": key["secret"]})[0] == 200
    assert server.call("GET", "/health")[0] == 200
    _, _, card = server.call("GET", "/.well-known/inference-engine.json", headers={"x-api-key": key["secret"]})
    assert json.loads(card)["auth"] == "bearer"
    status, _, refusal = server.call("POST", "/v1/messages", {"model": ALIAS, "max_tokens": 5, "messages": []})
    assert status == 401 and json.loads(refusal)["error"]["type"] == "authentication_error"
    status, _, text = server.call("GET", "/admin/keys", headers={"Authorization": "Bearer " + key["secret"]})
    assert status == 200 and key["secret"] not in text, "without an admin token this machine administers"
    assert server.admin("DELETE", f"/keys/{key['id']}")[0] == 204
    ask(server.sdk(), **SMALL)


def test_the_dashboards_bench_runs_beside_keys(server):
    make_key(server, "first")
    status, answer = server.admin("POST", "/bench", {"requests": 4, "max_tokens": 8})
    assert status == 200 and len(answer["streams"]) == 4, answer


def test_keys_outlive_the_server_and_their_secrets_are_not_kept(start):
    server = start(Server)
    server.load(nodes=1, model="synthetic", alias=ALIAS)
    key = make_key(server, "kept", tokens_per_min=5000)
    server.stop()
    for file in server.state.rglob("*"):
        if file.is_file():
            assert key["secret"].encode() not in file.read_bytes(), file
    assert key["secret"] not in server.log()
    again = start(Server, folder=server.state.parent)
    again.wait_live(1)
    ask(with_key(again, key), **SMALL)
    listed = again.get_json("/admin/keys")["keys"]
    assert [one["name"] for one in listed] == ["kept"] and listed[0]["tokens_per_min"] == 5000
    assert again.admin("PUT", f"/keys/{key['id']}", {"name": "renamed"})[0] == 200
    ask(with_key(again, key), **SMALL)
    assert again.admin("PUT", "/keys/key-none", {"name": "x"})[0] == 404


def test_a_key_may_ask_for_its_models_only(server):
    other = make_key(server, "other", models=["something-else"])
    with pytest.raises(openai.NotFoundError) as refused:
        ask(with_key(server, other), **SMALL)
    assert refused.value.code == "model_not_found" and "ready: none" in str(refused.value)
    with pytest.raises(openai.NotFoundError) as unknown:
        with_key(server, other).chat.completions.create(model="x" * len(ALIAS), messages=[HELLO])
    assert str(unknown.value).replace("x" * len(ALIAS), ALIAS) == str(refused.value), "what there is is not told"
    body = {"model": ALIAS, "input": "Hello"}
    for path in ("/v1/responses", "/v1/embeddings", "/tokenize", f"/v1/models/{ALIAS}"):
        method = "GET" if path.startswith("/v1/models") else "POST"
        status, _, text = server.call(method, path, body if method == "POST" else None, {"x-api-key": other["secret"]})
        assert status == 404 and "ready: none" in text, (path, text)
    assert [model.id for model in with_key(server, other).models.list()] == []
    mine = make_key(server, "mine", models=[ALIAS])
    ask(with_key(server, mine), **SMALL)
    assert [model.id for model in with_key(server, mine).models.list()] == [ALIAS]


def test_quotas_are_told_and_kept(server):
    key = make_key(server, "few", requests_per_min=3, tokens_per_min=100_000)
    client = with_key(server, key)
    raw = client.chat.completions.with_raw_response.create(
        model=ALIAS, max_tokens=4, messages=[{"role": "user", "content": "Hello"}])
    assert raw.headers["x-ratelimit-limit-requests"] == "3"
    assert raw.headers["x-ratelimit-remaining-requests"] == "2"
    assert int(raw.headers["x-ratelimit-remaining-tokens"]) < 100_000
    ask(client, **SMALL)
    ask(client, **SMALL)
    with pytest.raises(openai.RateLimitError) as refused:
        ask(client, **SMALL)
    assert refused.value.code == "rate_limit_exceeded"
    assert 1 <= int(refused.value.response.headers["retry-after"]) <= 20
    small = with_key(server, make_key(server, "small", tokens_per_min=30))
    assert ask(small, **SMALL).usage.total_tokens > 30, "more than a minute's worth passes when nothing is used"
    with pytest.raises(openai.RateLimitError) as refused:
        ask(small, **SMALL)
    assert "30 tokens a minute" in str(refused.value) and int(refused.value.response.headers["retry-after"]) > 1
    ask(with_key(server, make_key(server, "unbounded")), **SMALL)


def test_requests_at_once_are_bounded_by_key(server):
    client = with_key(server, make_key(server, "narrow", max_in_flight=2))
    long = {"max_tokens": 400, "extra_body": {"ignore_eos": True}}
    streams = [Stream(client, f"Story {number}", **long) for number in range(2)]
    for stream in streams:
        assert stream.begun.wait(60)
    with pytest.raises(openai.RateLimitError):
        ask(client, **SMALL)
    for stream in streams:
        stream.join(120)
        assert stream.error is None
    ask(client, **SMALL)


def test_a_long_answer_is_paid_while_it_is_made(server):
    client = with_key(server, make_key(server, "long", tokens_per_min=100))
    stream = Stream(client, "A long story", max_tokens=1000, extra_body={"ignore_eos": True})
    wait_until("it has more than a minute's worth", lambda: stream.pieces > 150)
    with pytest.raises(openai.RateLimitError):
        ask(client, **SMALL)
    assert stream.finish is None
    stream.join(120)
    assert stream.error is None, "what is under way goes on"


def test_each_answer_of_a_request_counts(server):
    client = with_key(server, make_key(server, "answers", max_in_flight=2))
    with pytest.raises(openai.PermissionDeniedError) as refused:
        ask(client, n=3, **SMALL)
    assert refused.value.code == "too_many_answers" and "may have 2 answers at once" in str(refused.value)
    for more in ({"prompt": ["a", "b", "c"]}, {"prompt": "a", "n": 3}, {"prompt": ["a", "b"], "n": 2}):
        with pytest.raises(openai.PermissionDeniedError):
            client.completions.create(model=ALIAS, max_tokens=1, **more)
    assert len(client.completions.create(model=ALIAS, max_tokens=1, prompt=["a", "b"]).choices) == 2
    assert len(client.embeddings.create(model=ALIAS, input=["x"] * 5).data) == 5, "they wait for each other"
    stream = Stream(client, "A long story", n=2, max_tokens=400, extra_body={"ignore_eos": True})
    assert stream.begun.wait(60)
    for one_more in (lambda: ask(client, **SMALL), lambda: client.embeddings.create(model=ALIAS, input="x")):
        with pytest.raises(openai.RateLimitError):
            one_more()
    stream.join(120)
    assert stream.error is None
    ask(client, n=2, **SMALL)


def test_what_one_key_asked_does_not_show_to_another(server):
    text = " ".join(f"secret plan {number}" for number in range(120))

    def cached(key):
        answer = ask(with_key(server, key), text, **SMALL)
        return answer.usage.prompt_tokens_details.cached_tokens

    mine, theirs = make_key(server, "mine"), make_key(server, "theirs")
    team = [make_key(server, f"team-{number}", cache_group="team") for number in range(2)]
    assert cached(mine) == 0 and cached(theirs) == 0 and cached(team[0]) == 0
    # Each again and again, so that both replicas have computed it for its group.
    assert max(cached(mine) for _ in range(4)) > 300
    assert max(cached(team[1]) for _ in range(4)) > 300


def test_who_counts_much_holds_up_nobody_elses_counting(server):
    flood, other = make_key(server, "flood"), make_key(server, "other")
    long = {"model": ALIAS, "messages": [{"role": "user", "content": "word " * 8_000}]}
    ended = []

    def count():
        ended.append(server.call("POST", "/v1/messages/count_tokens", long, {"x-api-key": flood["secret"]}, 120)[0])

    def under_way():
        return next(key["in_flight"] for key in server.get_json("/admin/keys")["keys"] if key["id"] == flood["id"])

    threads = [threading.Thread(target=count, daemon=True) for _ in range(200)]
    for thread in threads:
        thread.start()
    wait_until("all of them are there", lambda: len(ended) + under_way() >= 200)
    before = len(ended)
    status, _, text = server.call("POST", "/tokenize", {"model": ALIAS, "content": "x"}, {"x-api-key": other["secret"]})
    meanwhile = len(ended) - before
    for thread in threads:
        thread.join(120)
    assert status == 200 and set(ended) == {200}, text
    assert before < 150, "else there was nothing to be held up by"
    assert meanwhile < (200 - before) / 2, f"{meanwhile} of {200 - before} came first"


def test_ones_own_requests_are_ones_own(server):
    mine, theirs = make_key(server, "mine"), make_key(server, "theirs")
    raw = with_key(server, mine).chat.completions.with_raw_response.create(
        model=ALIAS, max_tokens=4, messages=[{"role": "user", "content": "Hello"}])
    path = "/v1/requests/" + raw.headers["x-request-id"]
    assert server.call("GET", path, headers={"x-api-key": mine["secret"]})[0] == 200
    assert server.call("GET", path, headers={"x-api-key": theirs["secret"]})[0] == 404


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Two replicas that compute nothing. Its tests make keys of names of their own and leave some there."""
    server = Server(tmp_path_factory.mktemp("quick"))
    try:
        server.load(nodes=2, model="synthetic")
        make_key(server, "so-that-one-is-needed")
        yield server
    finally:
        server.stop()


def chat(server, key, messages=None, **fields):
    """Status, headers and text of a small chat."""
    messages = messages or [{"role": "user", "content": "hi"}]
    return server.call("POST", "/v1/chat/completions",
                       {"model": "synthetic", "max_tokens": 2, "messages": messages} | fields,
                       {"x-api-key": key["secret"]})


def test_without_a_key_nothing_but_its_health_is_told(quick):
    headers = {"x-api-key": make_key(quick, "reads")["secret"]}
    described = json.loads(quick.call("GET", "/openapi.json", headers=headers)[2])
    told = {}
    for path in (path for path in described["paths"] if not path.startswith("/admin/")):
        asked = path.replace("{id}", "none")
        for method in ("GET", "POST", "DELETE"):
            status = quick.call(method, asked)[0]
            if status not in (401, 405):
                told[path, method] = status
    assert told == {(path, "GET"): 200 for path in ("/health", "/livez", "/readyz")}


def test_what_one_key_talks_about_another_does_not_learn(quick):
    mine, theirs = make_key(quick, "talks"), make_key(quick, "listens")

    def why(key, **fields):
        messages = [{"role": "user", "content": f"a plan {fields}"}, {"role": "assistant", "content": "which?"},
                    {"role": "user", "content": "this one"}]
        status, headers, text = chat(quick, key, messages, **fields)
        assert status == 200, text
        record = json.loads(quick.call("GET", "/v1/requests/" + headers["x-request-id"],
                                       headers={"x-api-key": key["secret"]})[2])
        (detail,) = [moment["detail"] for moment in record["timeline"] if moment["what"] == "dispatched"]
        return detail.partition(": ")[2]

    for fields in ({}, {"session_id": "monday"}):
        why(mine, **fields)
        assert why(mine, **fields) == "home of its conversation"
        assert why(theirs, **fields) == "least busy", fields


@pytest.mark.parametrize("method, path, body, status", [
    ("POST", "/v1/chat/completions", {"model": "nobody", "messages": [HELLO]}, 404),
    ("POST", "/v1/chat/completions", b"{", 400),
    ("POST", "/v1/messages", b"{", 400),
    ("POST", "/v1/completions", {"model": "synthetic", "prompt": "x", "max_tokens": 1}, 200),
    ("POST", "/tokenize", b"{", 400),
    ("POST", "/tokenize", {"model": "nobody", "content": "x"}, 404),
    ("POST", "/v1/embeddings", {"model": "nobody", "input": "x"}, 404),
    ("POST", "/v1/messages/count_tokens", {"model": "nobody", "messages": [HELLO]}, 404),
    ("GET", "/v1/models", None, 200),
    ("GET", "/v1/models?include_unloaded=true", None, 200),
    ("GET", "/v1/models/none", None, 404),
    ("GET", "/v1/requests/none", None, 404),
    ("GET", "/v1/responses/none", None, 404),
], ids=str)
def test_each_request_counts_once_whatever_comes_of_it(quick, method, path, body, status):
    key = make_key(quick, f"counted-{secrets.token_hex(4)}", requests_per_min=1)
    headers = {"x-api-key": key["secret"]}
    assert quick.call(method, path, body, headers)[0] == status
    assert quick.call(method, path, body, headers)[0] == 429
    assert quick.admin("PUT", f"/keys/{key['id']}", {"name": key["name"], "requests_per_min": 1})[0] == 200
    assert quick.call(method, path, body, headers)[0] == 429, "a change gives nothing back"


@pytest.mark.parametrize("path, body", [
    ("/v1/chat/completions", {"model": "synthetic", "max_tokens": 1, "messages": [HELLO]}),
    ("/v1/messages", {"model": "synthetic", "max_tokens": 1, "messages": [HELLO]}),
    ("/v1/responses", {"model": "synthetic", "max_output_tokens": 1, "input": "x"}),
    ("/v1/completions", {"model": "synthetic", "max_tokens": 1, "prompt": "x"}),
    ("/tokenize", {"model": "synthetic", "content": "x"}),
], ids=str)
@pytest.mark.parametrize("quota", [{"requests_per_min": 1, "tokens_per_min": 5000}, {"tokens_per_min": 12}], ids=str)
def test_who_has_used_up_a_quota_is_told_what_is_left(quick, path, body, quota):
    key = make_key(quick, f"told-{secrets.token_hex(4)}", **quota)
    status, served, text = quick.call("POST", path, body, {"x-api-key": key["secret"]})
    assert status == 200, text
    while status == 200:  # the first tokens are estimates
        status, refused, text = quick.call("POST", path, body, {"x-api-key": key["secret"]})
    assert status == 429 and int(refused["retry-after"]) >= 1, text
    for of, bound in quota.items():
        what = of.partition("_")[0]
        for answer in (served, refused):
            assert answer[f"x-ratelimit-limit-{what}"] == str(bound)
            assert 0 <= int(answer[f"x-ratelimit-remaining-{what}"]) <= bound
            assert 0 <= float(answer[f"x-ratelimit-reset-{what}"].rstrip("s")) <= 300
    spent = next(iter(quota)).partition("_")[0]
    assert int(refused[f"x-ratelimit-remaining-{spent}"]) < quota[f"{spent}_per_min"]
    assert float(refused[f"x-ratelimit-reset-{spent}"].rstrip("s")) > 0


def test_a_key_opens_nothing_when_its_time_is_over(quick):
    key = make_key(quick, "over-soon", expires_unix_s=int(time.time()) + 3600)
    assert chat(quick, key)[0] == 200
    changed = {"name": key["name"], "expires_unix_s": int(time.time()) - 1}
    assert quick.admin("PUT", f"/keys/{key['id']}", changed)[0] == 200
    status, _, text = chat(quick, key)
    assert status == 401 and json.loads(text)["error"]["code"] == "expired_api_key"
    with pytest.raises(openai.AuthenticationError):
        with_key(quick, key).models.list()
    assert quick.call("GET", "/metrics", headers={"x-api-key": key["secret"]})[0] == 401


def test_who_is_not_let_in_leaves_no_record(quick):
    key = make_key(quick, "recorded")
    _, headers, _ = chat(quick, key)
    for _ in range(3):
        assert chat(quick, {"secret": None})[0] == 401
    newest = quick.get_json("/admin/requests?limit=1")["requests"][0]
    assert newest["id"] == headers["x-request-id"]


def at_once(*calls):
    """What each returned, all begun together."""
    gate = threading.Barrier(len(calls))
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(lambda call=call: (gate.wait(), call())[1]) for call in calls]]


def test_a_key_that_was_taken_back_stays_away(quick):
    for number in range(20):
        key = make_key(quick, f"goes-{number}")
        path = f"/keys/{key['id']}"
        changed, deleted = at_once(lambda: quick.admin("PUT", path, {"name": key["name"], "weight": 2})[0],
                                   lambda: quick.admin("DELETE", path)[0])
        assert (changed, deleted) in [(200, 204), (404, 204), (409, 204), (200, 409)]
        if deleted == 409:
            assert quick.admin("DELETE", path)[0] == 204
        # Where it opens nothing it is a guess, and the eleventh within a minute.
        assert quick.call("GET", "/v1/models", headers={"x-api-key": key["secret"]})[0] in (401, 429)
        assert key["id"] not in [one["id"] for one in quick.get_json("/admin/keys")["keys"]]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/tokenize"])
@pytest.mark.parametrize("how", ["taken back", "over"])
def test_a_key_that_ends_while_a_body_comes_opens_nothing(quick, path, how):
    key = make_key(quick, f"half-{secrets.token_hex(4)}")
    body = json.dumps({"model": "synthetic", "max_tokens": 2, "messages": [HELLO], "content": "x"}).encode()
    sent = SlowBody(quick, path, body, {"Authorization": f"Bearer {key['secret']}"})
    if how == "taken back":
        assert quick.admin("DELETE", f"/keys/{key['id']}")[0] == 204
    else:
        changed = {"name": key["name"], "expires_unix_s": int(time.time()) - 1}
        assert quick.admin("PUT", f"/keys/{key['id']}", changed)[0] == 200
    assert sent.rest() == 401


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """One replica that makes one answer at a time, 10 ms a token."""
    server = Server(tmp_path_factory.mktemp("narrow"), environment={"FLOTILLA_SYNTHETIC_STEP_US": "10000"})
    try:
        server.load(nodes=1, model="synthetic", batch=False)
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize("change, status", [
    ("taken back", 401), ({"expires_unix_s": 1}, 401), ({"models": ["something-else"]}, 404), ({"weight": 2}, 200)], ids=str)
def test_who_waits_is_looked_at_again_when_it_is_their_turn(narrow, path, change, status):
    inside, key = (make_key(narrow, f"{name}-{secrets.token_hex(4)}") for name in ("inside", "waits"))
    connection = narrow.connection()
    endless = {"model": "synthetic", "stream": True, "max_tokens": 5000, "ignore_eos": True, "messages": [HELLO]}
    connection.request("POST", "/v1/chat/completions", json.dumps(endless),
                       {"Content-Type": "application/json", "x-api-key": inside["secret"]})
    assert connection.getresponse().read(20)
    body = {"model": "synthetic", "max_tokens": 2, "messages": [HELLO]}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(narrow.call, "POST", path, body, {"x-api-key": key["secret"]})
        wait_until("it waits", lambda: narrow.pool("synthetic")["queue_depth"] == 1)
        if change == "taken back":
            assert narrow.admin("DELETE", f"/keys/{key['id']}")[0] == 204
        else:
            assert narrow.admin("PUT", f"/keys/{key['id']}", {"name": key["name"]} | change)[0] == 200
        assert not asked.done()
        connection.close()
        answered, _, text = asked.result(60)
    assert answered == status, text
    wait_until("its place is free", lambda: narrow.pool("synthetic")["in_flight"] == 0)


def test_a_name_goes_to_one_key(quick):
    for number in range(5):
        made = at_once(*[lambda: quick.admin("POST", "/keys", {"name": f"twin-{number}"})[0]] * 6)
        assert sorted(made) == [201] + [409] * 5


@pytest.fixture(scope="module")
def anonymous(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("anonymous"), "--allow-anonymous", token="the-admin-token")
    try:
        server.load(nodes=1, model="synthetic")
        yield server
    finally:
        server.stop()


def test_the_operators_responses_are_not_those_of_clients_without_a_key(anonymous):
    def call(method, path, secret, body=None):
        status, _, text = anonymous.call(method, "/v1/responses" + path, body,
                                         {"Authorization": secret and f"Bearer {secret}"})
        return status, json.loads(text)

    asked = {"model": "synthetic", "input": "a plan", "max_output_tokens": 2}
    for owner, other in (("the-admin-token", None), (None, "the-admin-token")):
        status, kept = call("POST", "", owner, asked)
        assert status == 200, kept
        follows = asked | {"previous_response_id": kept["id"]}
        status, refused = call("POST", "", other, follows)
        assert status == 400 and refused["error"]["code"] == "previous_response_not_found"
        assert call("GET", f"/{kept['id']}", other)[0] == 404
        assert call("POST", "", owner, follows)[0] == 200


def test_what_the_operator_asked_does_not_show_to_those_without_a_key(anonymous):
    server = anonymous
    text = [{"role": "user", "content": "secret plan " * 200}]

    def cached(secret):
        status, _, answer = server.call("POST", "/v1/chat/completions",
                                        {"model": "synthetic", "max_tokens": 2, "messages": text},
                                        {"Authorization": secret and f"Bearer {secret}"})
        assert status == 200, answer
        return json.loads(answer)["usage"]["prompt_tokens_details"]["cached_tokens"]

    assert cached("the-admin-token") == 0
    assert cached("the-admin-token") > 100
    assert cached(None) == 0
    assert cached("none") > 100, "with a key that is none it is the same"


@pytest.mark.parametrize("body, field", [({}, "name"), ({"name": "a b"}, "name"), ({"name": "a", "weight": 0}, "weight"),
                                         ({"name": "a", "models": [1]}, "models"), ({"name": "a", "x": 1}, "x")])
def test_wrong_keys_are_named(shared, body, field):
    status, answer = shared.admin("POST", "/keys", body)
    assert status == 400 and field in answer["detail"], answer


def test_the_command_makes_lists_and_takes_back(server):
    made = server.command("keys", "add", "ci", "--models", ALIAS, "--max-in-flight", "4")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    ask(server.sdk(api_key=secret), **SMALL)
    listed = server.command("keys", "list")
    assert "ci" in listed.stdout and secret not in listed.stdout
    again = server.command("keys", "add", "ci")
    assert again.returncode == 1 and "already" in again.stderr
    assert server.command("keys", "remove", "ci").returncode == 0
    assert server.command("keys", "remove", "ci").returncode == 1
    assert "no API keys" in server.command("keys", "list").stdout


def test_the_list_tells_of_cache_group_and_expiry(server):
    now = int(time.time())
    make_key(server, "old", expires_unix_s=now - 86_400)
    make_key(server, "soon", expires_unix_s=now + 86_400, cache_group="team")
    assert server.command("keys", "add", "plain").returncode == 0
    listed = server.command("keys", "list").stdout
    assert "cache group" in listed and "expires" in listed

    def row(name):
        return next(line for line in listed.splitlines() if f" {name} " in line)

    def day(unix_s):
        return time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(unix_s))

    assert f"expired {day(now - 86_400)}" in row("old")
    assert "team" in row("soon") and day(now + 86_400) in row("soon") and "expired" not in row("soon")
    assert "never" in row("plain")
    told = json.loads(server.command("keys", "list", "--json").stdout)
    assert told["keys"] == server.get_json("/admin/keys")["keys"]
    for name in ("old", "soon", "plain"):
        assert server.command("keys", "remove", name).returncode == 0
    assert json.loads(server.command("keys", "list", "--json").stdout) == {"keys": []}


def test_with_keys_and_a_token_it_may_listen_to_others(start, tmp_path):
    server = start(Server)
    key = make_key(server, "lan")
    server.stop()
    token = tmp_path / "token"
    token.write_text("the-admin-token\n")
    token.chmod(0o600)
    open_to_all = start(Server, "--host", "0.0.0.0", "--admin-token-file", token, folder=server.state.parent)
    assert open_to_all.call("GET", "/v1/models")[0] == 401
    assert open_to_all.call("GET", "/v1/models", headers={"x-api-key": key["secret"]})[0] == 200
    assert open_to_all.call("GET", "/v1/models", headers={"x-api-key": "the-admin-token"})[0] == 200
    assert open_to_all.call("GET", "/admin/keys", headers={"Authorization": "Bearer " + key["secret"]})[0] == 401
