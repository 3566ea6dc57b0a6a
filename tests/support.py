"""The real program, as the tests run it: on a free port, with state and logs of its own."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

import anthropic
import openai

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = pathlib.Path(os.environ.get("FLOTILLA_BINARY") or ROOT / "build/release/flotilla")
MODEL = pathlib.Path(os.environ.get("FLOTILLA_CACHE") or ROOT / ".cache") / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
ALIAS = "smollm2-135m-instruct"

# Attempts follow each other fast, so that a test need not wait half a minute for a replica's return.
# Runners whose server a test killed do not stay for a minute.
QUICK = {"REPLICA_BACKOFF_MIN_S": "0.2", "REPLICA_BACKOFF_MAX_S": "1", "REPLICA_STABLE_S": "0",
         "AGENT_GRACE_S": "10"}


def wait_until(what, condition, seconds=60):
    """The first true value of condition(); fails with `what` when none came."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"after {seconds} s still not: {what}"
        pause.wait(0.02)


def run_command(*arguments, timeout=120, **options):
    """`flotilla ARGUMENTS...` to its end."""
    return subprocess.run([BINARY, *map(str, arguments)], text=True, capture_output=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, check=False, **options)


class Process:
    """One process of ours with its log."""

    def __init__(self, arguments, log, environment=None, listening=None):
        self.log_file = pathlib.Path(log)
        self.log_begin = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self.log_file.open("ab") as err:
            self.process = subprocess.Popen([BINARY, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                            stdout=err, stderr=err, env=os.environ | (environment or {}),
                                            start_new_session=True)
        if listening:
            try:
                self.url = wait_until(f"the address in {log}", lambda: self._find_address(listening))
            except BaseException:
                self.kill()
                raise

    def _find_address(self, pattern):
        found = re.search(pattern, self.log())
        if not found and self.process.poll() is not None:
            raise AssertionError(f"it ended with {self.process.returncode}: {self.log()[-2000:]}")
        return found and found[1]

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        """What this process wrote, without what another wrote there before."""
        with self.log_file.open("rb") as file:
            file.seek(self.log_begin)
            return file.read().decode("utf-8", "replace")

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=60):
        return self.process.wait(seconds)

    def stop(self):
        """Ctrl-C; the exit code."""
        if self.alive():
            self.signal(signal.SIGINT)
            try:
                self.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return self.process.returncode

    def kill(self):
        if self.alive():
            self.process.kill()
            self.process.wait()


class Talks:
    """Speaks HTTP to self.url, with the official SDK and bare."""

    url: str
    headers: dict = {}  # of each bare request
    tls = None  # for https: the ssl.SSLContext of a client

    def sdk(self, **options):
        options = {"api_key": "none", "max_retries": 0, "timeout": 120} | options
        if self.tls:
            options.setdefault("http_client", openai.DefaultHttpxClient(verify=self.tls))
        return openai.OpenAI(base_url=self.url + "/v1", **options)

    def anthropic(self, **options):
        options = {"api_key": "none", "max_retries": 0, "timeout": 120} | options
        return anthropic.Anthropic(base_url=self.url, **options)

    def connection(self, timeout=60):
        parts = urllib.parse.urlparse(self.url)
        if self.tls:
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def call(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers and text. `body`: bytes as they are, else JSON. A header of None is not sent."""
        headers = {"Content-Type": "application/json"} | self.headers | (headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = self.connection(timeout)
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        if body is not None or method in ("POST", "PUT"):
            headers.setdefault("Content-Length", str(len(body or b"")))
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        return answer.status, answer.headers, text

    def get_json(self, path):
        status, _, text = self.call("GET", path)
        assert status == 200, f"GET {path}: {status} {text}"
        return json.loads(text)


class SlowBody:
    """A request whose head was let in; its body is sent by rest(), which says the status."""

    def __init__(self, server, path, body, headers):
        self.body = body
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        fields = {"Host": f"127.0.0.1:{server.port}", "Content-Type": "application/json",
                  "Expect": "100-continue", "Content-Length": len(body)} | headers
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        self.answer = self.socket.makefile("rb")
        assert self.answer.readline().startswith(b"HTTP/1.1 100 ") and self.answer.readline() == b"\r\n"

    def rest(self):
        with self.socket:
            self.socket.sendall(self.body)
            return int(self.answer.readline().split()[1])


class Runner(Process, Talks):
    """`flotilla runner` on a TCP port; one thread where nothing else is said, since several tests run at once. `./test
    gpu` says in FLOTILLA_GPU_LAYERS how many layers are on the GPU."""

    def __init__(self, folder, *arguments, environment=None):
        layers = os.environ.get("FLOTILLA_GPU_LAYERS")
        if layers and "--gpu-layers" not in arguments and "--synthetic" not in arguments:
            arguments = ("--gpu-layers", layers, *arguments)
        if "--threads" not in arguments:
            arguments = ("--threads", "1", *arguments)
        super().__init__(["runner", "--port", "0", "--host", "127.0.0.1", *arguments], folder / "runner.log",
                         environment, listening=r" on (http://127\.0\.0\.1:\d+)")


class Server(Process, Talks):
    """`flotilla serve`, by default with an empty state and without an admin token."""

    def __init__(self, folder, *arguments, port=0, environment=None, token=None, tls=None):
        self.state = folder / "state"
        self.tls = tls
        self.token_file = folder / "token"
        if token:
            self.token_file.write_text(token + "\n")
            self.token_file.chmod(0o644)  # whatever the umask
            arguments = (*arguments, "--admin-token-file", self.token_file)
            self.headers = {"Authorization": f"Bearer {token}"}
        super().__init__(["serve", "--port", port, "--state", self.state, *arguments], folder / "serve.log",
                         QUICK | (environment or {}), listening=r"flotilla: listening on (https?://127\.0\.0\.1:\d+)")

    @property
    def port(self):
        return urllib.parse.urlparse(self.url).port

    def command(self, *arguments, **options):
        access = {"FLOTILLA_SERVER": self.url}
        if self.headers:
            access["FLOTILLA_ADMIN_TOKEN_FILE"] = str(self.token_file)
        return run_command(*arguments, env=os.environ | access, **options)

    def admin(self, method, path, body=None, timeout=120):
        status, _, text = self.call(method, "/admin" + path, body, timeout=timeout)
        return status, json.loads(text) if text else None

    def put_cluster(self, nodes, cluster="local"):
        """`nodes`: how many local ones, of one thread each since several tests run at once, or a list of
        specifications."""
        if isinstance(nodes, int):
            nodes = [{"id": f"local-{number + 1}", "threads": 1} for number in range(nodes)]
        status, answer = self.admin("PUT", f"/clusters/{cluster}", {"nodes": nodes})
        assert status in (200, 201), answer
        return answer

    def load(self, nodes=None, cluster="local", **settings):
        """Declares the cluster where `nodes` is given, loads and checks that all came up."""
        if nodes is not None:
            self.put_cluster(nodes, cluster)
        settings = {"model": str(MODEL), "batch": True} | settings
        status, answer = self.admin("POST", f"/clusters/{cluster}/load", settings)
        assert status == 200, answer
        assert all(replica["live"] for replica in answer["replicas"]), answer
        return answer

    def pool(self, alias=ALIAS, cluster="local"):
        for pool in self.get_json(f"/admin/clusters/{cluster}/status")["pools"]:
            if pool["alias"] == alias:
                return pool
        return None

    def replicas(self, alias=ALIAS, cluster="local"):
        pool = self.pool(alias, cluster)
        return pool["replicas"] if pool else []

    def wait_live(self, count, seconds=60, alias=ALIAS):
        wait_until(f"{count} live replicas",
                   lambda: sum(replica["live"] for replica in self.replicas(alias)) == count, seconds)

    def wait_idle(self, seconds=30):
        wait_until("nothing in flight", lambda: self.pool()["in_flight"] == 0 and
                   all(replica["busy_count"] == 0 for replica in self.replicas()), seconds)

    def agents(self):
        """Process ids of the agents of this state, an outlived server's included."""
        return sorted(pid for children in children_of_all().values() for pid in children if self._is_my_agent(pid))

    def runners(self):
        """Process ids of this server's runners, those of an agent that outlived another server of
        the same state included, oldest first."""
        below = children_of_all()
        return sorted(child for agent in self.agents() for child in below.get(agent, []) if is_runner(child))

    def _is_my_agent(self, pid):
        command = command_line(pid)
        return command[1:2] == ["agent"] and str(self.state / "agent") in command


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        return []


def is_runner(pid):
    return command_line(pid)[1:2] == ["runner"]


def children_of_all():
    """Parent id -> ids of its children that still run."""
    below = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended meanwhile
        if state != "Z":
            below.setdefault(int(parent), []).append(int(entry.name))
    return below


def ask(client, text="Tell me a story about the sea.", **options):
    options = {"model": ALIAS, "max_tokens": 40, "temperature": 0.7, "seed": 1} | options
    return client.chat.completions.create(messages=[{"role": "user", "content": text}], **options)


class Stream(threading.Thread):
    """One streamed answer, read in the background: what came, and how it ended."""

    def __init__(self, client, text, **options):
        super().__init__(daemon=True)
        self.client, self.prompt, self.options = client, text, options
        self.text, self.pieces, self.finish, self.error = "", 0, None, None
        self.usage = self.served = None
        self.begun = threading.Event()
        self.start()

    def run(self):
        try:
            for chunk in ask(self.client, self.prompt, stream=True, stream_options={"include_usage": True},
                             **self.options):
                if chunk.usage:
                    self.usage = chunk.usage
                self.served = getattr(chunk, "x_flotilla", None) or self.served
                for choice in chunk.choices:
                    self.finish = choice.finish_reason or self.finish
                    if choice.delta.content:
                        self.text += choice.delta.content
                        self.pieces += 1
                        self.begun.set()
        except Exception as error:  # noqa: BLE001: whatever it is, the test shows it
            self.error = error
        finally:
            self.begun.set()

    def end(self, seconds=120):
        """Waits for the end and checks that it is a whole answer."""
        self.join(seconds)
        assert not self.is_alive(), f"no end after {seconds} s: {self.prompt!r}"
        assert self.error is None, f"{self.prompt!r}: {self.error!r}"
        assert self.finish, f"{self.prompt!r}: ended without a finish_reason"
        return self
