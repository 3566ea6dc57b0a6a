import os
import signal
import threading

import openai
import pytest

from support import ALIAS, Server, Stream, ask, command_line, wait_until


def whats(record):
    return [moment["what"] for moment in record["timeline"]]


def newest(server):
    return server.get_json("/admin/requests?limit=1")["requests"][0]


def test_of_a_whole_answer(shared):
    answer = shared.sdk().chat.completions.with_raw_response.create(
        model=ALIAS, max_tokens=6, messages=[{"role": "user", "content": "A secret word: abracadabra"}])
    request_id = answer.headers["x-request-id"]
    for path in ("/v1/requests/", "/admin/requests/"):
        record = shared.get_json(path + request_id)
        assert whats(record) == ["dispatched", "first_token", "ended"], record
        assert record["end"] == "completed" and record["status"] == 200 and record["phase"] == "ended"
        assert "least busy" in record["timeline"][0]["detail"] and record["node"].startswith("local-")
        assert record["prompt_tokens"] > 10 and record["completion_tokens"] == 6
        assert record["prefill_chunks"] >= 1 and record["retries"] == 0
        assert 0 < record["ttft_ms"] <= record["took_ms"]
        assert "abracadabra" not in str(record)
        # Of a key that several people have no one is told where the others are.
        assert record.get("peer") == ("127.0.0.1" if path.startswith("/admin") else None)
    assert newest(shared)["peer"] == "127.0.0.1"
    shown = shared.command("request", request_id)
    assert shown.returncode == 0 and "first_token" in shown.stdout and f"{request_id} from 127.0.0.1: " in shown.stdout


def test_of_requests_that_end_early(shared):
    for body, status in ((b"{", 400), (b'{"model": "nobody", "messages": [{"role": "user", "content": "x"}]}', 404)):
        got, headers, _ = shared.call("POST", "/v1/chat/completions", body)
        assert got == status
        record = shared.get_json("/v1/requests/" + headers["x-request-id"])
        assert record["status"] == status and record["timeline"][-1]["what"] == "ended"


def test_every_answer_has_an_id(shared):
    for method, path in (("GET", "/livez"), ("GET", "/nothing"), ("PUT", "/v1/models"), ("GET", "/admin/clusters"),
                         ("GET", "/v1/requests/req-0")):
        assert shared.call(method, path)[1]["x-request-id"].startswith("req-"), path
    assert shared.call("GET", "/admin/requests/req-0")[0] == 404


def test_of_a_stream_that_lost_its_replica(start):
    server = start(Server)
    server.load(nodes=2)
    stream = Stream(server.sdk(), "A long story", max_tokens=120, extra_body={"ignore_eos": True})
    wait_until("it streams", lambda: stream.pieces > 3)
    (busy,) = [replica["node"] for replica in server.replicas() if replica["busy_count"]]
    record = newest(server)
    assert record["phase"] == "answering" and record["node"] == busy and record["end"] is None
    (pid,) = [pid for pid in server.runners() if f"--node={busy}" in command_line(pid)]
    os.kill(pid, signal.SIGKILL)
    stream.end()
    record = wait_until("it ended", lambda: server.get_json("/admin/requests/" + record["id"]))
    assert record["retries"] == 1 and record["resumed"] is True
    assert [what for what in whats(record) if what != "gap"] in (
        ["dispatched", "first_token", "lost", "queued", "dispatched", "resumed", "ended"],
        ["dispatched", "first_token", "lost", "dispatched", "resumed", "ended"])


def test_administrator_cancels(shared):
    server = shared
    options = {"max_tokens": 2000, "extra_body": {"ignore_eos": True}}
    stream = Stream(server.sdk(), "An endless story", **options)
    stream.begun.wait(30)
    status, answer = server.admin("POST", f"/requests/{newest(server)['id']}/cancel", {})
    assert status == 200, answer
    stream.join(10)
    assert isinstance(stream.error, openai.APIError) and "cancelled" in str(stream.error)
    server.wait_idle(5)
    record = newest(server)
    assert record["end"] == "cancelled"
    assert server.admin("POST", f"/requests/{record['id']}/cancel", {})[0] == 409
    assert server.admin("POST", "/requests/req-0/cancel", {})[0] == 404
    # One that is not streamed has no head yet: it gets a status.
    errors = []

    def whole():
        with pytest.raises(openai.APIStatusError) as raised:
            ask(server.sdk(), "An endless story", **options)
        errors.append(raised.value)

    thread = threading.Thread(target=whole)
    thread.start()
    wait_until("it is at work", lambda: newest(server)["phase"] == "answering")
    server.admin("POST", f"/requests/{newest(server)['id']}/cancel", {})
    thread.join(10)
    assert errors and errors[0].status_code == 499
