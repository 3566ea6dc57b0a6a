"""What each key used, against what the clients got and what the runners made."""

import datetime
import json
import os
import re
import signal

import pytest

from support import Server, Stream, ask, wait_until

MODEL = {"model": "synthetic", "extra_body": {"ignore_eos": True}}


class Client:
    """One key's user, who adds up what the answers said."""

    def __init__(self, server, name):
        status, self.key = server.admin("POST", "/keys", {"name": name})
        assert status == 201, self.key
        self.sdk = server.sdk(api_key=self.key["secret"])
        server.any_key = self.key["secret"]  # as soon as there is a key /metrics needs one
        self.said = dict.fromkeys(("requests", "prompt_tokens", "cached_tokens", "generated_tokens"), 0)

    def add(self, usage):
        details = usage.prompt_tokens_details
        self.said["requests"] += 1
        self.said["prompt_tokens"] += usage.prompt_tokens
        self.said["cached_tokens"] += details.cached_tokens if details else 0
        self.said["generated_tokens"] += usage.completion_tokens

    def ask(self, text, tokens):
        self.add(ask(self.sdk, text, max_tokens=tokens, **MODEL).usage)

    def ask_for_choices(self, text, tokens, count):
        self.add(ask(self.sdk, text, max_tokens=tokens, n=count, **MODEL).usage)

    def complete(self, prompts, tokens):
        self.add(self.sdk.completions.create(prompt=prompts, max_tokens=tokens, **MODEL).usage)

    def begin(self, text, tokens):
        return Stream(self.sdk, text, max_tokens=tokens, **MODEL)

    def end(self, stream):
        self.add(stream.end().usage)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    # A replica that dies stays away, so that its counts stay as they were.
    server = Server(tmp_path_factory.mktemp("usage"),
                    environment={"FLOTILLA_SYNTHETIC_STEP_US": "10000", "REPLICA_STABLE_S": "3600",
                                 "REPLICA_BACKOFF_MIN_S": "300", "REPLICA_BACKOFF_MAX_S": "300"})
    try:
        server.load(nodes=2, model="synthetic")
        yield server
    finally:
        server.stop()


def counted(server, by="key"):
    """The rows by their name or day, counts alone."""
    rows = server.get_json(f"/admin/usage?by={by}")["rows"]
    return {row.get("name", row.get("day")): {name: row[name] for name in row if name not in ("key", "name", "day")}
            for row in rows}


def total(counts, name):
    return sum(row[name] for row in counts.values())


def metric(server, name):
    """Values by replica."""
    text = server.call("GET", "/metrics", headers={"x-api-key": server.any_key})[2]
    found = re.findall(rf'^{name}\{{[^}}]*replica="([^"]+)"[^}}]*\}} (\S+)$', text, re.M)
    return {replica: int(float(value)) for replica, value in found}


def test_usage_is_what_clients_got_and_what_runners_made(server):
    ann, bob = Client(server, "ann"), Client(server, "bob")
    streams = [(ann, ann.begin(f"Story {number}", 40)) for number in range(3)]
    streams.append((bob, bob.begin("Story of Bob", 25)))
    ann.ask("In one piece", 30)
    bob.ask("Story of Bob", 10)
    ann.ask_for_choices("Hi", 10, 4)
    bob.complete(["One prompt", "and another"], 5)
    for client, stream in streams:
        client.end(stream)
    wait_until("all is counted", lambda: counted(server) == {"ann": ann.said, "bob": bob.said})
    for name, told in [("generated_tokens", "generated_tokens"), ("prompt_tokens", "prompt_tokens"),
                       ("cached_tokens", "cached_prompt_tokens")]:
        wait_until(f"the runners' {name} are the same", lambda: total(counted(server), name) == sum(
            metric(server, f"flotilla_replica_{told}_total").values()), 10)

    # One client goes away, and a replica is killed with half of the answers in it.
    gone = bob.sdk.chat.completions.create(messages=[{"role": "user", "content": "Never mind"}], stream=True,
                                           max_tokens=400, **MODEL)
    for _, _ in zip(range(8), gone):
        pass
    gone.close()
    streams = [ann.begin(f"Longer story {number}", 250) for number in range(6)]
    wait_until("all are under way", lambda: all(stream.pieces > 4 for stream in streams))
    os.kill(server.runners()[0], signal.SIGKILL)
    for stream in streams:
        ann.end(stream)
    assert any(stream.served["resumed"] for stream in streams)
    wait_until("the one who left is counted", lambda: counted(server)["bob"]["requests"] == 4)
    left = next(record for record in server.get_json("/admin/requests")["requests"] if record["status"] == 0
                or "went away" in (record["end"] or ""))
    assert left["completion_tokens"] >= 7 and left["prompt_tokens"] > 0, "what came until then"
    bob.said["requests"] += 1
    for name, field in [("prompt_tokens",) * 2, ("cached_tokens",) * 2, ("generated_tokens", "completion_tokens")]:
        bob.said[name] += left[field]
    after = counted(server)
    assert after["ann"]["generated_tokens"] == ann.said["generated_tokens"], "once, though two replicas had them"
    assert after["ann"]["prompt_tokens"] == ann.said["prompt_tokens"]
    assert after == {"ann": ann.said, "bob": bob.said}

    # Each replica's part of it; the survivor made that, and what of the left one's was under way.
    passed_on = metric(server, "flotilla_generated_tokens_total")
    assert sum(passed_on.values()) == total(after, "generated_tokens")
    (survivor,) = metric(server, "flotilla_replica_generated_tokens_total")
    assert passed_on.keys() - {survivor}, "the killed one had a part"

    def surplus():
        return metric(server, "flotilla_replica_generated_tokens_total")[survivor] - passed_on[survivor]

    wait_until("the survivor has told", lambda: surplus() >= 0, 10)
    assert surplus() <= 100, "a second's steps"


def test_usage_is_told_by_day_as_csv_and_by_the_command(server):
    today = datetime.datetime.now(datetime.timezone.utc).date()
    ask(server.sdk(api_key=Client(server, "carl").key["secret"]), max_tokens=5, **MODEL)
    wait_until("it is counted", lambda: counted(server).get("carl", {}).get("requests") == 1)
    by_key, by_day = counted(server), counted(server, "day")
    assert set(by_day) <= {str(today), str(today + datetime.timedelta(days=1))}
    for name in ("requests", "prompt_tokens", "cached_tokens", "generated_tokens"):
        assert total(by_key, name) == total(by_day, name)
    status, headers, text = server.call("GET", "/admin/usage?by=key&format=csv")
    assert status == 200 and headers["Content-Type"].startswith("text/csv")
    lines = text.splitlines()
    assert lines[0] == "key,name,requests,prompt_tokens,cached_tokens,generated_tokens"
    assert any(re.fullmatch(r"key-[0-9a-f]{8},carl,1,\d+,\d+,5", line) for line in lines), text
    assert server.command("usage", "--csv").stdout == text
    shown = server.command("usage", "--by", "day").stdout
    assert str(today)[:8] in shown and "generated tokens" in shown
    for query in ("by=week", "format=xml"):
        status, _, text = server.call("GET", f"/admin/usage?{query}")
        assert status == 400 and query.partition("=")[2] in json.loads(text)["detail"]


def test_usage_outlives_its_key_and_the_server(start):
    server = start(Server)
    server.load(nodes=1, model="synthetic")
    key = Client(server, "gone-soon")
    key.ask("Hello", 6)
    ask(server.sdk(api_key=key.key["secret"]), max_tokens=3, **MODEL)
    assert server.admin("DELETE", f"/keys/{key.key['id']}")[0] == 204
    ask(server.sdk(), max_tokens=2, **MODEL)
    server.stop()
    again = start(Server, folder=server.state.parent)
    assert counted(again)["gone-soon"]["generated_tokens"] == 9
    assert counted(again)[""]["generated_tokens"] == 2, "without a key, since there was none"
