"""An OpenAI-compatible server of the tests' own, for a replica whose engine is not ours. A test says what it answers."""

import contextlib
import http.server
import json
import threading


class Engine(http.server.ThreadingHTTPServer):
    """`answers`: a kind of Answers. It serves while it is entered; a test may give it attributes, which its answers
    have as self.server's."""

    daemon_threads = True

    def __init__(self, answers, port=0, host="127.0.0.1"):
        super().__init__((host, port), answers)

    @property
    def port(self):
        return self.server_address[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Answers(http.server.BaseHTTPRequestHandler):
    """One request to it: the model that it lists is "m", and its answer to everything is a word."""

    def do_GET(self):
        self.whole({"object": "list", "data": self.models()})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with contextlib.suppress(ConnectionError):  # whoever asked may leave
            self.answer(body)

    def models(self):
        return [{"id": "m", "object": "model"}]

    def answer(self, body):
        self.stream(["aye"])

    def stream(self, words, **fields):
        """A whole answer of these words, each sent as it comes; `fields`: of each chunk."""
        self.begin("text/event-stream")
        for word in words:
            self.chunk({"role": "assistant", "content": word}, **fields)
        self.chunk({}, "stop", **fields)
        self.done()

    def chunk(self, delta, finish=None, **fields):
        self.event({"object": "chat.completion.chunk",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | fields)

    def event(self, said):
        self.wfile.write(f"data: {json.dumps(said)}\n\n".encode())

    def done(self):
        self.wfile.write(b"data: [DONE]\n\n")

    def whole(self, body, status=200):
        self.begin("application/json", status)
        self.wfile.write(json.dumps(body).encode())

    def begin(self, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()  # the end of the connection is that of the body

    def log_message(self, *_):
        pass
