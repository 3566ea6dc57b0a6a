"""one_at_a_time.py PORT [HOST [SECONDS]]: an OpenAI-compatible server that has one position for all that it computes: two requests at once fail at
prefill, as mlx_lm.server's do with a module that was written for one stream."""

import http.server
import json
import sys
import threading

busy = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, {"status": "ok", "data": [{"id": "its-model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not busy.acquire(blocking=False):
            return self.answer(404, {"error": "arange(): incompatible function arguments"})
        try:
            threading.Event().wait(0.3 if not pause else 0)
        finally:
            busy.release()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        words = ["aye"] * (10 if pause and body["max_tokens"] > 1 else 1)
        for choice in (*({"delta": {"role": "assistant", "content": word}, "finish_reason": None} for word in words),
                       {"delta": {}, "finish_reason": "stop"}):
            threading.Event().wait(pause)
            chunk = {"object": "chat.completion.chunk", "model": body["model"], "choices": [{"index": 0} | choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0
host = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
http.server.ThreadingHTTPServer((host, int(sys.argv[1])), Handler).serve_forever()
