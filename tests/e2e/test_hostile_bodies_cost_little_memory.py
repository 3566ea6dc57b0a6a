import concurrent.futures
import json
import pathlib
import resource
import socket

import pytest
from support import MODEL, Runner, Server

SIZE = 31_000_000  # of each body: just below what a server takes
WHOLE = b'{"model":"synthetic","max_tokens":1,"messages":[%s]}'


def many(item, size=SIZE):
    """A chat request whose messages are so many of `item`."""
    return WHOLE % b",".join([item] * (size // (len(item) + 1)))


def many_keys():
    return b"{%s}" % b",".join(b'"%x":1' % number for number in range(SIZE // 10))


# What each takes as a tree without a bound on its values, in MB: 240-700.
BODIES = {
    "empty lists": lambda: many(b"[]"),
    "numbers": lambda: many(b"0"),
    "short strings": lambda: many(b'"a"'),
    "strings that are no short ones": lambda: many(b'"' + b"a" * 15 + b'"'),
    "objects": lambda: many(b'{"a":1}'),
    "messages": lambda: many(b'{"role":"user","content":""}'),
    "names": many_keys,
    "deep and wide": lambda: many(b"[" * 30 + b"]" * 30),
    "deep": lambda: b"[" * SIZE,
}
PATHS = ["/v1/messages", "/v1/responses", "/v1/completions", "/v1/embeddings", "/v1/messages/count_tokens", "/tokenize"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("gateway"))
    try:
        server.load(nodes=1, model="synthetic")
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    runner = Runner(tmp_path_factory.mktemp("runner"), "--model", MODEL, "--width", "2")
    try:
        yield runner
    finally:
        runner.stop()


@pytest.fixture(params=["gateway", "runner"])
def place(request):
    return request.getfixturevalue(request.param)


def memory(pid, which):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(which + ":"):
            return int(line.split()[1]) / 1024
    raise AssertionError(which)


class Peak:
    """MB that a process had more than before, at most."""

    def __init__(self, process):
        self.pid, self.before = process.pid, memory(process.pid, "VmRSS")
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # the peak is what it is now

    def grown(self):
        return memory(self.pid, "VmHWM") - self.before


def test_a_tree_of_many_values_is_refused_while_it_is_small(place):
    for name, make in BODIES.items():
        body = make()
        peak = Peak(place)
        status, _, text = place.call("POST", "/v1/chat/completions", body)
        grown = peak.grown()
        print(f"{name}: {status}, {grown:.0f} MB")
        assert grown < 200, name
        if name == "deep":
            assert status == 400 and "deeper than 64 levels" in text
        else:
            assert status == 413 and "more than 1200000 values" in text, name


@pytest.mark.parametrize("path", PATHS)
def test_in_every_form(place, path):
    body = many(b"[]", 6_000_000)  # two million values; what a body of SIZE costs is told above
    peak = Peak(place)
    status, _, text = place.call("POST", path, body)
    assert status == 413 and "1200000 values" in text
    assert peak.grown() < 200


def test_a_long_text_is_no_tree(place):
    message = json.dumps({"role": "user", "content": "a word or two, " * (SIZE // 15)}).encode()
    peak = Peak(place)
    model = place.get_json("/v1/models")["data"][0]["id"].encode()
    status, _, text = place.call("POST", "/v1/chat/completions", (WHOLE % message).replace(b"synthetic", model))
    print(f"{status} {text[:200]}, {peak.grown():.0f} MB")
    assert status == 400 and json.loads(text)["error"]["code"] == "context_length_exceeded", text
    assert peak.grown() < 300


def test_many_at_once_are_told_to_come_again(gateway):
    body = BODIES["numbers"]()
    peak = Peak(gateway)
    with concurrent.futures.ThreadPoolExecutor(24) as threads:
        answers = list(threads.map(lambda _: gateway.call("POST", "/v1/chat/completions", body, timeout=120), range(24)))
    statuses = {status for status, _, _ in answers}
    print(statuses, f"{peak.grown():.0f} MB")
    assert statuses <= {413, 503}
    for status, headers, text in answers:
        assert status == 413 or (int(headers["Retry-After"]) > 0 and "request bodies" in text)
    assert peak.grown() < 370, "they are 710 MB, of which a network may have 256 at a time, and one tree at most 75"
    assert gateway.call("GET", "/health")[0] == 200


def test_a_body_that_is_only_begun_costs_little_and_ends_soon(gateway, open_files_at_least):
    count = 1500
    open_files_at_least(2 * count)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
           b"Content-Length: 10000000\r\n\r\n{"
    peak = Peak(gateway)
    begun = []
    for _ in range(count):
        begun.append(socket.create_connection(("127.0.0.1", gateway.port)))
        begun[-1].sendall(head)
    assert gateway.call("GET", "/health")[0] == 200
    each = 1024 * peak.grown() / count
    print(f"{each:.1f} KiB each")
    assert each < 24
    for one in begun:
        one.settimeout(20)
        assert one.recv(100).startswith(b"HTTP/1.1 408")
        one.close()


@pytest.fixture
def open_files_at_least():
    """Of this process; a server has its own limit, which it raises."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def raise_to(count):
        if soft < count:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count), hard))

    yield raise_to
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
