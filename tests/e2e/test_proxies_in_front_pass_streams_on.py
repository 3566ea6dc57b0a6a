import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest

from certificates import Authority
from support import ROOT, Server, Stream, Talks, wait_until

PACKAGES = pathlib.Path(os.environ.get("FLOTILLA_CACHE") or ROOT / ".cache") / "packages"
PROGRAMS = {"nginx": PACKAGES / "nginx/usr/sbin/nginx", "caddy": PACKAGES / "caddy/usr/bin/caddy"}
TOKEN = {"Authorization": "Bearer correct-horse-battery"}
CHAT = {"model": "synthetic", "messages": [{"role": "user", "content": "hi"}]}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def replace(text, *pairs):
    """What is to be replaced has to be there: a test of a recipe that is not the recipe tests nothing."""
    for pattern, value in pairs:
        text, count = re.subn(pattern, value, text)
        assert count, f"the recipe has no {pattern}"
    return text


class Proxy(Talks):
    """The real program with the recipe of deploy/, at free ports and with a certificate of the tests."""

    def __init__(self, kind, folder, upstream, authority):
        self.tls = authority.context()
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        certificate, key = authority.issue(kind)
        command = getattr(self, f"_write_{kind}")(folder, port, upstream, certificate, key)
        environment = os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        with (folder / "proxy.log").open("wb") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment)
        self.log_file = folder / "proxy.log"
        wait_until("it listens", self._listens)

    def _listens(self):
        assert self.process.poll() is None, self.log_file.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(self.url.rpartition(":")[2]))) == 0

    @staticmethod
    def _write_nginx(folder, port, upstream, certificate, key):
        recipe = replace((ROOT / "deploy/nginx.conf").read_text(),
                         (r"server 127\.0\.0\.1:8000", f"server 127.0.0.1:{upstream}"),
                         (r"listen 80", f"listen 127.0.0.1:{free_port()}"), (r"listen 443", f"listen 127.0.0.1:{port}"),
                         (r"\n *listen \[::\]:\d+[^\n]*", ""), (r"llm\.example\.org", "localhost"),
                         (r"/etc/ssl/flotilla/fullchain\.pem", str(certificate)),
                         (r"/etc/ssl/flotilla/privkey\.pem", str(key)))
        (folder / "flotilla.conf").write_text(recipe)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
        (folder / "nginx.conf").write_text(
            f"daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log stderr;\n"
            f"events {{}}\nhttp {{\n    access_log off;\n{paths}    include {folder}/flotilla.conf;\n}}\n")
        return [PROGRAMS["nginx"], "-p", folder, "-e", "stderr", "-c", folder / "nginx.conf"]

    @staticmethod
    def _write_caddy(folder, port, upstream, certificate, key):
        recipe = replace((ROOT / "deploy/Caddyfile").read_text(),
                         (r"reverse_proxy 127\.0\.0\.1:8000", f"reverse_proxy 127.0.0.1:{upstream}"),
                         (r"\nllm\.example\.org \{", f"\nhttps://127.0.0.1:{port} {{\n\ttls {certificate} {key}"))
        options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n"
        (folder / "Caddyfile").write_text(options + recipe)
        return [PROGRAMS["caddy"], "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def token(tmp_path_factory):
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text("correct-horse-battery\n")
    return file


def start_server(folder, token, port=0):
    """The made-up model at 20 ms a token. A second one takes over the first one's runner."""
    server = Server(folder, "--admin-token-file", token, "--allow-anonymous", "--trusted-proxy", "127.0.0.1", port=port,
                    environment={"FLOTILLA_SYNTHETIC_STEP_US": "20000"})
    server.call("PUT", "/admin/clusters/local", {"nodes": [{"id": "local-1"}]}, TOKEN)
    status, _, text = server.call("POST", "/admin/clusters/local/load", {"model": "synthetic", "batch": True}, TOKEN)
    assert status == 200, text
    return server


@pytest.fixture(scope="module")
def server(tmp_path_factory, token):
    server = start_server(tmp_path_factory.mktemp("upstream"), token)
    yield server
    server.stop()


@pytest.fixture(scope="module", params=PROGRAMS)
def kind(request):
    if not PROGRAMS[request.param].exists():
        pytest.skip(f"{request.param} is not in {PACKAGES}: ./test unpacks it on Debian")
    return request.param


@pytest.fixture(scope="module")
def proxy(kind, tmp_path_factory, server, authority):
    made = Proxy(kind, tmp_path_factory.mktemp(kind), server.port, authority)
    yield made
    made.stop()


def test_tokens_arrive_one_by_one(server, proxy):
    stream = Stream(proxy.sdk(), "A story", model="synthetic", max_tokens=40)
    assert stream.begun.wait(30)
    assert stream.is_alive() and stream.pieces < 30, "the first token came with the last"
    stream.end()
    assert stream.pieces > 30


def test_the_client_is_seen(server, proxy):
    parts = proxy.url.rpartition(":")
    with socket.create_connection(("127.0.0.1", int(parts[2])), timeout=30, source_address=("127.0.0.5", 0)) as plain:
        with proxy.tls.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
            body = json.dumps(CHAT | {"max_tokens": 1}).encode()
            secure.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{parts[2]}\r\n"
                           "X-Forwarded-For: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\nConnection: close\r\n"
                           f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = b"".join(iter(lambda: secure.recv(4096), b"")).decode()
    assert answer.startswith("HTTP/1.1 200"), answer
    identity = re.search(r"(?im)^x-request-id: (\S+)\r$", answer)[1]
    _, _, text = server.call("GET", f"/admin/requests/{identity}", headers=TOKEN)
    assert json.loads(text)["key"] == "127.0.0.5"


def test_the_operator_reaches_admin(proxy):
    origin = {"Origin": proxy.url}
    assert proxy.call("GET", "/admin/clusters", headers=TOKEN | origin)[0] == 200
    assert proxy.call("GET", "/admin/clusters", headers=origin)[0] == 401


def test_a_large_body_passes(proxy):
    body = CHAT | {"max_tokens": 1, "metadata": {"x": "y" * 5_000_000}}
    assert proxy.call("POST", "/v1/chat/completions", body)[0] == 200


def test_a_client_that_goes_away_frees_its_place(server, proxy):
    def in_flight():
        _, _, text = server.call("GET", "/admin/clusters/local/status", headers=TOKEN)
        return json.loads(text)["pools"][0]["in_flight"]

    connection = proxy.connection()
    connection.request("POST", "/v1/chat/completions", json.dumps(CHAT | {"stream": True, "max_tokens": 5000}),
                       {"Content-Type": "application/json"})
    assert connection.getresponse().read(20)
    assert in_flight() == 1
    connection.close()
    wait_until("its place is free", lambda: in_flight() == 0, 10)


def test_an_upstream_that_restarts_is_found_again(kind, tmp_path, token, authority):
    first = start_server(tmp_path, token)
    proxy = Proxy(kind, tmp_path, first.port, authority)
    try:
        ask = lambda: proxy.call("POST", "/v1/chat/completions", CHAT | {"max_tokens": 1})[0]  # noqa: E731
        assert ask() == 200
        first.stop()
        assert ask() == 502
        first = start_server(tmp_path, token, first.port)
        assert ask() == 200
    finally:
        proxy.stop()
        first.stop()
