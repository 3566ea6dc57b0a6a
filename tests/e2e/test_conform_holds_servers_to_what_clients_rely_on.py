"""`flotilla conform`: ours holds every case; of a server that is not whole it says what is wrong."""

import http.server
import json
import threading

import pytest

from support import run_command


@pytest.mark.timeout(420)
def test_our_server_holds_every_case(shared):
    done = run_command("conform", shared.url, "--json", timeout=400)
    report = json.loads(done.stdout)
    broken = {case["id"]: case["reason"] for case in report["cases"] if not case["held"]}
    assert not broken and done.returncode == 0
    assert report["held"] == report["of"] == len(report["cases"]) > 120
    assert {"chat completions", "responses", "messages", "completions", "embeddings", "behaviour"} <= {
        score["api"] for score in report["scores"]}


class Careless(http.server.BaseHTTPRequestHandler):
    """Says the same to every request, and streams without an end."""

    def answer(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode())

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "The sea is wide and the ship is small."}
        if b'"stream":true' in asked:
            chunk = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": message}]}
            return self.answer(b"data: " + json.dumps(chunk).encode() + b"\n\n", "text/event-stream")
        answer = {"id": "c", "object": "chat.completion", "choices": [
            {"index": 0, "message": message, "finish_reason": "stop"}]}
        return self.answer(json.dumps(answer).encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def careless():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Careless)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_a_careless_server_breaks_is_named(careless):
    done = run_command("conform", careless, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and 0 < report["held"] < report["of"] and report["model"] == "m"
    reasons = {case["id"]: case["reason"] for case in report["cases"]}
    assert "status 200, wanted 400" in reasons["malformed-json"]
    assert reasons["stream-form"] == "the stream does not end with [DONE]"
    assert reasons["usage-adds-up"] == "there is no usage"
    assert reasons["seed-is-used"] == "four seeds gave the same answer"
    assert "with the stop string" in reasons["stop-across-tokens"]
    assert reasons["seed-repeats"] is None and reasons["answers-stay-apart"] is not None
    assert all(case["held"] == (case["reason"] is None) for case in report["cases"])


def test_rows_and_the_score_are_printed(careless):
    done = run_command("conform", careless, "--only", "seed")
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("seed-"))
    assert rows["seed-repeats"] == "held" and rows["seed-is-used"].startswith("failed  four seeds")
    assert "m at http" in done.stdout and done.stdout.splitlines()[-1].startswith("all ") and done.returncode == 1
    failed = run_command("conform", careless, "--only", "seed", "--failed").stdout
    assert "seed-is-used" in failed and "seed-repeats" not in failed


def test_what_cannot_be_asked_is_said(careless):
    nothing = run_command("conform", careless, "--only", "no such case")
    assert nothing.returncode == 1 and "no case" in nothing.stderr
    assert run_command("conform", "http://127.0.0.1:1").returncode == 1
