import json
import pathlib
import resource
import socket

from support import Server, wait_until

STREAMS = 1000


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def open_files(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def test_a_thousand_held_streams_and_none_left(start):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4 * STREAMS:  # ours here, and the server's two a stream, which it inherits
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * STREAMS), hard))
    server = start(Server, environment={"FLOTILLA_SYNTHETIC_STEP_US": "3000000"})
    server.put_cluster(4)
    status, answer = server.admin("POST", "/clusters/local/load",
                                  {"model": "synthetic", "batch": True, "batch_size": 64})
    assert status == 200, answer
    pool = lambda: server.pool("synthetic")  # noqa: E731
    memory, files = resident_kib(server.pid), open_files(server.pid)
    body = json.dumps({"model": "synthetic", "stream": True, "max_tokens": 2000, "ignore_eos": True,
                       "messages": [{"role": "user", "content": "Go."}]}).encode()
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    streams = []
    for _ in range(STREAMS):
        stream = socket.create_connection(("127.0.0.1", server.port))
        stream.sendall(head + body)
        streams.append(stream)
    wait_until("all are held", lambda: pool()["in_flight"] + pool()["queue_depth"] == STREAMS)
    assert pool()["in_flight"] >= 250  # these are relayed, the rest waits
    each = (resident_kib(server.pid) - memory) / STREAMS
    print(f"{each:.1f} KiB a stream")
    assert each <= 64
    for stream in streams:
        stream.close()
    wait_until("all are gone", lambda: pool()["in_flight"] + pool()["queue_depth"] == 0)
    wait_until("their files are closed", lambda: open_files(server.pid) <= files + 260, 30)  # idle to runners
