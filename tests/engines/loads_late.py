"""loads_late.py PORT: an OpenAI-compatible server that is healthy from its first moment on and loads then, as
mlx_lm.server does: until its memory has grown for some seconds it fails what it is asked."""

import http.server
import json
import sys
import threading

STEPS, STEP_BYTES, STEP_S = 12, 8 << 20, 0.5
loaded = threading.Event()
weights = []


def load():
    for _ in range(STEPS):
        weights.append(bytearray(b"x" * STEP_BYTES))
        threading.Event().wait(STEP_S)
    loaded.set()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, "application/json", '{"status": "ok"}')

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not loaded.is_set():
            return self.answer(503, "application/json", '{"error": "still loading"}')
        chunks = ({"delta": {"role": "assistant", "content": "aye"}}, {"delta": {}, "finish_reason": "stop"})
        self.answer(200, "text/event-stream", "".join(
            f"data: {json.dumps({'choices': [{'index': 0} | chunk]})}\n\n" for chunk in chunks) + "data: [DONE]\n\n")

    def answer(self, status, kind, text):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


threading.Thread(target=load, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
