"""A server that says whatever a test wants the page to show.

For states of the page that a real fleet reaches rarely or slowly (a stall, silence, a refusal);
what the real server does is proved by the tests that start it. Also `python3 stand_in.py` to work
on the page: it plays a small busy fleet on port 8000, and `npm run dev` shows it.
"""

import copy
import http.server
import json
import math
import mimetypes
import os
import pathlib
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def built_page() -> pathlib.Path:
    """The newest built dashboard: of this clone's build folders, or of `npm run build`."""
    if chosen := os.environ.get("FLOTILLA_DASHBOARD_DIST"):
        return pathlib.Path(chosen)
    pages = [*ROOT.glob("build/*/dashboard/dist/index.html"), ROOT / "dashboard/dist/index.html"]
    pages = [page for page in pages if page.exists()]
    if not pages:
        raise RuntimeError(
            "no built dashboard: run 'npm ci && npm run build' in dashboard/, or build the program"
        )
    return max(pages, key=lambda page: page.stat().st_mtime).parent


def replica(index, **changes):
    return {
        "index": index,
        "node": f"local-{index + 1}",
        "host": "127.0.0.1",
        "live": True,
        "state": "ready",
        "busy_count": 0,
        "queued": 0,
        "restarts": 0,
        "attempts": 0,
        "next_retry_in_s": None,
        "last_error": None,
        "log_tail": None,
        "engine": None,
        "model_bytes": 98_000_000,
        "loaded_bytes": 98_000_000,
        "tokens_per_s": 0.0,
        "step_overhead": 0.02,
        "resident_bytes": 312_000_000,
        "trimmed": None,
        "sessions_stored": 3,
        "session_store_bytes": 41_000_000,
        "session_store_disk_bytes": 0,
    } | changes


def pool(alias="smollm2-135m-instruct", replicas=None, **changes):
    replicas = [replica(0), replica(1)] if replicas is None else replicas
    return {
        "alias": alias,
        "model": "/models/SmolLM2-135M-Instruct.Q4_1.gguf",
        "generation": 1,
        "is_replica": True,
        "batch": True,
        "batch_reason": None,
        "batch_size": 8,
        "exact_resume": True,
        "context_length": 8192,
        "quantization": "Q4_1",
        "size_bytes": 98_000_000,
        "replicas_live": sum(r["live"] for r in replicas),
        "replicas_total": len(replicas),
        "queue_depth": 0,
        "in_flight": sum(r["busy_count"] for r in replicas),
        "tokens_per_s": sum(r["tokens_per_s"] for r in replicas),
        "replicas": replicas,
    } | changes


def node(id, **changes):
    return {
        "id": id,
        "label": id,
        "transport": "local",
        "host": "127.0.0.1",
        "state": "up",
        "reason": "",
    } | changes


def cluster(id="local", label="This machine", nodes=None, pools=(), loading=()):
    nodes = [node("local-1"), node("local-2")] if nodes is None else nodes
    return {
        "id": id,
        "label": label,
        "kind": "replica",
        "nodes": nodes,
        "pools": list(pools),
        "loading": list(loading),
    }


# What the stream tells beside the fleet, and the routes that answer the same.
TOLD_BESIDE = {"nodes": "/admin/nodes", "requests": "/admin/requests", "audit": "/admin/events"}
HOLD = object()  # a chat answer waits here until the test says go_on
BROKEN = {"choices": []}  # with it an answer ends without its mark


def text_chunk(words, **delta):
    return {"choices": [{"index": 0, "delta": {"content": words} | delta, "finish_reason": None}]}


def last_chunks(reason="stop", **served):
    """How an answer ends: the reason, then usage and who served it."""
    served = {
        "node": "local-1",
        "replica": "local-1",
        "queued_ms": 0.4,
        "ttft_ms": 41.6,
        "tokens_per_s": 87.3,
        "resumed": False,
        "cached_tokens": 24,
    } | served
    usage = {"prompt_tokens": 31, "completion_tokens": 12, "total_tokens": 43}
    return [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": usage, "x_flotilla": served},
    ]


class StandIn:
    """Holds one state of the fleet; every change of it goes to all pages that follow."""

    def __init__(self, port=0):
        self._changed = threading.Condition()
        self._version = 0
        self._clusters = []
        self.history = []  # the newest sample of each pool and replica, as the stream has it
        self.transfers = []
        self.login = self.keys = False  # an admin token is set, keys exist
        self.silent = False
        self.refusal = None  # (status, body) of the stream itself
        self.requests = []  # (method, path, body) of what the page sent
        self.answers = {}  # (method, path) -> (status, body, seconds to wait)
        self.speech = ["Hello."]  # what a chat answer says: words, chunks, or HOLD
        self.go_on = threading.Event()  # ends a HOLD
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                stand_in._get(self)

            def do_PUT(self):
                stand_in._change(self)

            do_POST = do_PUT
            do_DELETE = do_PUT

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def orders(self):
        """Of its requests those that change something: questions come when they come."""
        return [request for request in self.requests if request[0] != "GET"]

    def show(self, *clusters):
        with self._changed:
            self._clusters = copy.deepcopy(list(clusters))
            self._version += 1
            self._changed.notify_all()

    def overview(self):
        """One event of the stream."""
        return {
            "version": "0.1.0",
            "endpoint": f"{self.url}/v1",
            "clusters": self._clusters,
            "login": self.login,
            "keys": self.keys,
            "history": self.history,
            "transfers": self.transfers,
        }

    def close(self):
        self.go_on.set()
        with self._changed:
            self._version = -1
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def _get(self, request):
        if request.path == "/admin/stream":
            self._stream(request)
            return
        path = request.path.partition("?")[0]
        if path.startswith("/admin/") or ("GET", path) in self.answers:
            self.requests.append(("GET", request.path, None))
            missing = (404, {"title": "Not found", "detail": f"there is nothing at {path}"}, 0)
            status, answer, wait_s = self.answers.get(("GET", path), missing)
            time.sleep(wait_s)
            self._answer(request, status, answer)
            return
        dist = built_page()
        file = dist / ("index.html" if request.path == "/" else request.path.lstrip("/"))
        if not file.is_file() or dist not in file.resolve().parents:
            request.send_error(404)
            return
        body = file.read_bytes()
        request.send_response(200)
        request.send_header("Content-Type", mimetypes.guess_type(file.name)[0] or "font/woff2")
        request.send_header("Content-Security-Policy", POLICY)
        request.send_header("X-Content-Type-Options", "nosniff")
        request.send_header("Cache-Control", "no-cache")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _stream(self, request):
        request.close_connection = True
        if self.refusal:
            self._answer(request, *self.refusal)
            return
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Connection", "close")
        request.end_headers()
        seen = None
        told = {}
        try:
            while True:
                with self._changed:
                    if self._version == seen:
                        self._changed.wait(1)
                    seen = self._version
                    if seen == -1:
                        return
                    state = self.overview()
                if not self.silent:
                    request.wfile.write(b"data: " + json.dumps(state).encode() + b"\n\n")
                    request.wfile.write(self._news(told))
                    request.wfile.flush()
                time.sleep(0.1)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _news(self, told):
        """Events with names, of what has changed since they were `told`."""
        out = b""
        for name, path in TOLD_BESIDE.items():
            status, answer, _ = self.answers.get(("GET", path), (404, None, 0))
            if status == 200 and told.get(name) != answer:
                told[name] = copy.deepcopy(answer)
                out += f"event: {name}\ndata: {json.dumps(answer)}\n\n".encode()
        return out

    def _change(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        self.requests.append((request.command, request.path, json.loads(body or b"{}")))
        known = (request.command, request.path) in self.answers
        if request.path == "/v1/chat/completions" and not known:
            self._speak(request)
            return
        status, answer, wait_s = self.answers.get((request.command, request.path), (200, {}, 0))
        time.sleep(wait_s)
        self._answer(request, status, answer)

    def _speak(self, request):
        """A chat answer, as the gateway streams one."""
        request.close_connection = True
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Connection", "close")
        request.end_headers()
        try:
            for said in self.speech:
                if said is HOLD:
                    self.go_on.wait(30)
                    continue
                chunk = text_chunk(said) if isinstance(said, str) else said
                request.wfile.write(
                    b": keep-alive\n\ndata: " + json.dumps(chunk).encode() + b"\n\n"
                )
                request.wfile.flush()
            request.wfile.write(b"data: [DONE]\n\n" if BROKEN not in self.speech else b"")
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _answer(self, request, status, body):
        text = isinstance(body, str)
        data = body.encode() if text else json.dumps(body).encode()
        request.send_response(status)
        request.send_header("Content-Type", "text/plain" if text else "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


def busy_fleet(t=0.0):
    """A fleet with something of everything, at second t."""

    def wave(phase, low, high):
        return low + (high - low) * (0.5 + 0.5 * math.sin(t / 7 + phase))

    def ready(index, phase, **changes):
        busy = round(wave(phase, 1, 9.4))
        return replica(index, busy_count=busy, tokens_per_s=round(busy * 21.3, 1), **changes)

    out = replica(
        1,
        live=False,
        state="waiting",
        restarts=3,
        attempts=2,
        next_retry_in_s=47 - t % 40,
        last_error="killed by signal 9",
        node="mini-b",
        host="mini-b.lan",
        loaded_bytes=0,
    )
    loading = replica(
        2,
        live=False,
        state="loading",
        attempts=1,
        node="mini-c",
        host="mini-c.lan",
        model_bytes=4_680_000_000,
        loaded_bytes=int(wave(0, 1e9, 4.6e9)),
    )
    racks = [
        ready(0, 1, node="mini-a", host="mini-a.lan", restarts=1),
        out,
        loading,
        ready(3, 3, node="mini-d", host="mini-d.lan"),
    ]
    load = {
        "alias": "qwen2.5-1.5b-instruct",
        "elapsed_s": 18 + t,
        "eta_s": 41,
        "nodes": [
            {
                "node": "local-1",
                "phase": "loading",
                "loaded_bytes": int(wave(2, 2e8, 9e8)),
                "total_bytes": 1_120_000_000,
                "bytes_per_s": 31_000_000,
                "stalled": False,
            },
            {
                "node": "local-2",
                "phase": "loading",
                "loaded_bytes": 402_000_000,
                "total_bytes": 1_120_000_000,
                "bytes_per_s": 0,
                "stalled": True,
            },
        ],
    }
    here = [ready(0, 0), ready(1, 2)]
    single = [replica(0, node="local-1", busy_count=1, tokens_per_s=38.2)]
    return [
        cluster(
            pools=[
                pool(replicas=here, queue_depth=round(wave(2, 0, 6))),
                pool(
                    "mamba-130m",
                    single,
                    batch=False,
                    batch_size=1,
                    queue_depth=2,
                    batch_reason="this model's recurrent state cannot be shared",
                    model="/models/mamba-130m.Q8_0.gguf",
                ),
            ],
            loading=[load],
        ),
        cluster(
            "minis",
            "Mac minis",
            pools=[
                pool(
                    "llama-3.1-8b-instruct",
                    racks,
                    exact_resume=False,
                    model="/models/Meta-Llama-3.1-8B-Instruct.Q4_0.gguf",
                )
            ],
            nodes=[
                node("mini-a", transport="ssh"),
                node("mini-b", transport="ssh", state="down", reason="no answer for 15 s"),
                node("mini-c", transport="ssh"),
                node("mini-d", transport="ssh"),
            ],
        ),
    ]


def main():
    server = StandIn(port=8000)
    print(f"playing a small fleet at {server.url}")
    start = time.monotonic()
    try:
        while True:
            server.show(*busy_fleet(time.monotonic() - start))
            time.sleep(0.25)
    except KeyboardInterrupt:
        server.close()


if __name__ == "__main__":
    main()
