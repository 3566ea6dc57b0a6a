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

    def __init__(self, server, finished, name, address="127.0.0.1", key=None):
        self.where = urllib.parse.urlparse(server.url)
        self.finished, self.name, self.address, self.key = finished, name, address, key
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
            "model": ALIAS, "max_tokens": tokens, "ignore_eos": True,
            "messages": [{"role": "user", "content": f"Story {number} of {self.name}, please."}]}))
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        self.finished.append((self.name, answer.status, body))

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
    assert all(status == 200 for _, status, _ in finished)
    # Three of the heavy for one of the light: 13 of 40, and what lies in the replica.
    assert 16 <= behind <= 33, f"{40 - behind} of the light one's 40 ended before the heavy one's 40"
