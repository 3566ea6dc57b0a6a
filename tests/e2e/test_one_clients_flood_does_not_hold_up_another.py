import http.client
import json
import threading
import urllib.parse

import pytest
from support import ALIAS, Server, wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("fair"))
    try:
        server.load(nodes=1)
        yield server
    finally:
        server.stop()


class Client:
    """Asks from an address or with a key of its own, many at once; `finished` grows as answers end."""

    def __init__(self, server, finished, name, address="127.0.0.1", key=None, model=ALIAS):
        self.where = urllib.parse.urlparse(server.url)
        self.finished, self.name, self.address, self.key, self.model = finished, name, address, key, model
        self.threads = []

    def ask(self, count, tokens=12):
        for number in range(count):
            thread = threading.Thread(target=self._one, args=(number, tokens), daemon=True)
            thread.start()
            self.threads.append(thread)

    def _one(self, number, tokens):
        connection = http.client.HTTPConnection(self.where.hostname, self.where.port, timeout=120,
                                                source_address=(self.address, 0))
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        connection.request("POST", "/v1/chat/completions", headers=headers, body=json.dumps({
            "model": self.model, "max_tokens": tokens, "ignore_eos": True,
            "messages": [{"role": "user", "content": f"Story {number} of {self.name}, please."}]}))
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        self.finished.append((self.name, answer.status, body, answer.headers["x-request-id"]))

    def wait(self):
        for thread in self.threads:
            thread.join(120)
            assert not thread.is_alive()


def ended_of(finished, name):
    return sum(one[0] == name for one in finished)


def flood(server, one, other, finished, count=8):
    """How many of `one`'s 120 requests end while `other`'s few are answered."""
    one.ask(120)
    wait_until("the queue is long", lambda: server.pool()["queue_depth"] > 90, 30)
    before = ended_of(finished, one.name)
    other.ask(count)
    other.wait()
    meanwhile = ended_of(finished, one.name) - before
    one.wait()
    wrong = [entry for entry in finished if entry[1] != 200 or entry[2]["usage"]["completion_tokens"] != 12]
    assert not wrong, wrong[:3]
    return meanwhile


def test_two_addresses_get_equal_shares(server):
    finished = []
    crowd, other = Client(server, finished, "crowd"), Client(server, finished, "other", "127.0.0.2")
    meanwhile = flood(server, crowd, other, finished)
    # As many as of the other, and those that were inside the replica or just ahead already.
    assert meanwhile <= 2 * 8 + 10 + 8, f"{meanwhile} of the crowd's 120 came first"


def test_keys_get_shares_by_their_weights(server):
    secrets = {}
    for name, weight in (("light", 1), ("heavy", 3)):
        status, answer = server.admin("POST", "/keys", {"name": name, "weight": weight})
        assert status == 201, answer
        secrets[name] = answer["secret"]
    finished = []
    light, heavy = (Client(server, finished, name, key=secrets[name]) for name in ("light", "heavy"))
    light.ask(40)
    heavy.ask(40)
    heavy.wait()
    behind = 40 - ended_of(finished, "light")
    light.wait()
    assert all(status == 200 for _, status, *_ in finished)
    # Three of the heavy for one of the light: 13 of 40, and what lies in the replica.
    assert 16 <= behind <= 33, f"{40 - behind} of the light one's 40 ended before the heavy one's 40"


def first_tokens(server, crowd_asks, asks=16):
    """Milliseconds to the first token of who asks `asks` times beside one who asked `crowd_asks` times before."""
    finished = []
    crowd = Client(server, finished, "crowd", model="synthetic")
    other = Client(server, finished, "other", "127.0.0.2", model="synthetic")
    crowd.ask(crowd_asks)
    pool = lambda: server.pool("synthetic")  # noqa: E731
    wait_until("all of the crowd's have come",
               lambda: pool()["in_flight"] + pool()["queue_depth"] + len(finished) >= crowd_asks, 30)
    other.ask(asks)
    other.wait()
    crowd.wait()
    assert all(entry[1] == 200 for entry in finished), finished[:3]
    return sorted(server.get_json("/admin/requests/" + request_id)["ttft_ms"]
                  for name, _, _, request_id in finished if name == "other")


def test_a_crowd_of_200_costs_at_most_twice_the_first_token_of_an_equal(start):
    server = start(Server, environment={"FLOTILLA_SYNTHETIC_STEP_US": "40000"})
    server.put_cluster(1)
    status, answer = server.admin("POST", "/clusters/local/load", {"model": "synthetic", "batch": True})
    assert status == 200, answer
    equal = first_tokens(server, 16)
    crowded = first_tokens(server, 200)
    print(f"beside an equal {equal[8]:.0f} ms, at most {equal[-1]:.0f}; beside 200 {crowded[8]:.0f}, {crowded[-1]:.0f}")
    assert crowded[8] <= 2 * equal[8] and crowded[-1] <= 2 * equal[-1], (equal, crowded)
