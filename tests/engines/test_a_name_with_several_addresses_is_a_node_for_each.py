"""As a Kubernetes headless service is one: the name has the addresses of the servers that are ready. The DNS server
is the test's own; the gateway has it as its resolver in a mount namespace of its own."""

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading

import pytest

import support
from conftest import FAKE
from support import Server, Stream, wait_until

NAME = "engines.test"
RESOLVER = "127.0.0.99"


class Names(threading.Thread):
    """A DNS server that knows one name. `addresses`: its A records; None: there is no such name."""

    def __init__(self):
        super().__init__(daemon=True)
        self.addresses = None
        self.asked = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((RESOLVER, 53))
        self.socket.settimeout(0.2)
        self.closed = False
        self.start()

    def run(self):
        while not self.closed:
            try:
                query, client = self.socket.recvfrom(512)
            except TimeoutError:
                continue
            end = query.index(0, 12) + 5
            kind = struct.unpack(">H", query[end - 4:end - 2])[0]
            name = query[12:end - 5]
            known = name == b"".join(bytes([len(part)]) + part.encode() for part in NAME.split("."))
            found = (self.addresses or []) if known and kind == 1 else []
            if known and kind == 1:
                self.asked += 1
            missing = not known or self.addresses is None
            head = query[:2] + struct.pack(">HHHHH", 0x8183 if missing else 0x8180, 1, len(found), 0, 0)
            records = b"".join(struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(address)
                               for address in found)
            self.socket.sendto(head + query[12:end] + records, client)

    def close(self):
        self.closed = True
        self.join()
        self.socket.close()


def why_not(folder):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return "a mount namespace with a resolver of its own needs root and unshare"
    tried = subprocess.run(["unshare", "-m", "mount", "--bind", "/etc/hosts", "/etc/resolv.conf"], check=False,
                           capture_output=True, text=True)
    return f"no mount namespaces here: {tried.stderr.strip()}" if tried.returncode else None


@pytest.fixture
def names(tmp_path, monkeypatch):
    reason = why_not(tmp_path)
    if reason:
        pytest.skip(reason)
    try:
        server = Names()
    except OSError as error:
        pytest.skip(f"no DNS server at {RESOLVER}:53: {error}")
    resolver = tmp_path / "resolv.conf"
    resolver.write_text(f"nameserver {RESOLVER}\noptions timeout:1 attempts:1\n")
    wrapper = tmp_path / "flotilla"
    wrapper.write_text(f"""#!/bin/sh
exec unshare -m sh -c 'mount --bind {resolver} /etc/resolv.conf && exec {support.BINARY} "$@"' sh "$@"
""")
    wrapper.chmod(0o755)
    monkeypatch.setattr(support, "BINARY", wrapper)
    yield server
    server.close()


def listens(address, port):
    with socket.socket() as one:
        return one.connect_ex((address, port)) == 0


@pytest.fixture
def engines():
    """engines(address): an engine at that address and one port for all."""
    with socket.socket() as free:
        free.bind(("127.0.0.2", 0))
        port = free.getsockname()[1]
    started = []

    def start(address):
        # Its answers last longer than the time between two look-ups.
        started.append(subprocess.Popen([sys.executable, FAKE, str(port), address, "0.8"]))
        wait_until(f"something listens at {address}", lambda: listens(address, port), 20)

    start.port = port
    yield start
    for process in started:
        process.kill()
        process.wait()


def nodes(server):
    return {replica["node"]: replica["live"] for replica in server.replicas("pool")}


def test_nodes_come_and_go_with_the_addresses(start, names, engines):
    for address in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
        engines(address)
    names.addresses = ["127.0.0.3", "127.0.0.2"]
    server = start(Server)
    server.put_cluster([{"id": "gpu", "transport": "http", "url": f"http://{NAME}:{engines.port}/v1"}])
    server.load(model="any", alias="pool", batch=False)
    assert nodes(server) == {"gpu-127-0-0-2": True, "gpu-127-0-0-3": True}
    hosts = {node["node"]: node["host"] for node in server.get_json("/admin/nodes")["nodes"]}
    assert hosts["gpu-127-0-0-2"] == f"127.0.0.2:{engines.port}"

    names.addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    wait_until("a third one serves", lambda: nodes(server).get("gpu-127-0-0-4"), 20)

    # One that is taken away finishes what it has.
    streams = [Stream(server.sdk(), f"Number {number}", model="pool") for number in range(3)]
    for stream in streams:
        stream.begun.wait(30)
    names.addresses = ["127.0.0.3", "127.0.0.4"]
    wait_until("it drains", lambda: [replica["node"] for replica in server.replicas("pool")
                                     if replica["state"] == "draining"] == ["gpu-127-0-0-2"], 20)
    assert {stream.end().served["node"] for stream in streams} == set(hosts) | {"gpu-127-0-0-4"}
    wait_until("it is gone", lambda: set(nodes(server)) == {"gpu-127-0-0-3", "gpu-127-0-0-4"}, 20)

    # A name that is not found for a while takes nobody away; one address stays a node of its own name.
    names.addresses, before = None, names.asked
    wait_until("it was looked up", lambda: names.asked >= before + 2, 30)
    assert nodes(server) == {"gpu-127-0-0-3": True, "gpu-127-0-0-4": True}
    names.addresses = ["127.0.0.4"]
    wait_until("one is left", lambda: nodes(server) == {"gpu-127-0-0-4": True}, 20)
    assert Stream(server.sdk(), "Hello", model="pool").end().served["node"] == "gpu-127-0-0-4"

    cluster = server.get_json("/admin/clusters/local")
    assert [node["id"] for node in cluster["nodes"]] == ["gpu"]


def test_a_name_of_one_address_is_the_node_itself(start, names, engines):
    engines("127.0.0.2")
    names.addresses = ["127.0.0.2"]
    server = start(Server)
    server.load(nodes=[{"id": "gpu", "transport": "http", "url": f"http://{NAME}:{engines.port}/v1"}], model="any",
                alias="pool", batch=False)
    assert nodes(server) == {"gpu": True}


def test_other_addresses_all_at_once_take_over_and_have_the_places_of_those_that_went(start, names, engines):
    for number in range(2, 6):
        engines(f"127.0.0.{number}")
    old, new = ["127.0.0.2", "127.0.0.3"], ["127.0.0.4", "127.0.0.5"]
    names.addresses = old
    server = start(Server)
    server.load(nodes=[{"id": "gpu", "transport": "http", "url": f"http://{NAME}:{engines.port}/v1"}], model="any",
                alias="pool", batch=False)
    streams = [Stream(server.sdk(), f"Number {number}", model="pool") for number in range(4)]
    wait_until("two wait", lambda: server.pool("pool")["queue_depth"] == 2)
    names.addresses = new
    assert {stream.end().served["node"] for stream in streams} == {
        "gpu-" + address.replace(".", "-") for address in old + new}
    wait_until("the old ones are gone", lambda: nodes(server) == {"gpu-127-0-0-4": True, "gpu-127-0-0-5": True}, 20)

    names.addresses = old
    wait_until("they are back", lambda: nodes(server) == {"gpu-127-0-0-2": True, "gpu-127-0-0-3": True}, 20)
    assert sorted(replica["index"] for replica in server.replicas("pool")) == [0, 1]
