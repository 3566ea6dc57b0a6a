#!/usr/bin/env python3
"""soak.py [--requests N]: a day of small requests in some minutes, by the synthetic model.

`flotilla bench soak` asks the whole program for answers of one token, in turns; between the turns conversations come, a
second pool is loaded and unloaded, and clients go away. At the end of each turn memory, open files and threads of the
server, its agent and its runners are read. All must be flat after the first turn (1 % of memory; files and threads to
within what idle connections hold), and /metrics must have counted what the clients counted.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import support  # noqa: E402

TURNS = 10
MEMORY_DRIFT = 0.01
CONVERSATIONS = 20
LEAVERS = 50
FILES_OF_IDLE_CONNECTIONS = 64


def status_of(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {"memory": int(re.search(r"^VmRSS:\s+(\d+)", text, re.M)[1]) << 10,
            "threads": int(re.search(r"^Threads:\s+(\d+)", text, re.M)[1]),
            "files": len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))}


def ended_requests(server):
    """Status -> how many requests of the pool ended with it, by /metrics."""
    text = server.call("GET", "/metrics")[2]
    return {code: int(float(number)) for code, number in
            re.findall(r'^flotilla_requests_total\{code="(\d+)",pool="synthetic"\} (\S+)$', text, re.M)}


def hold_conversations(server):
    sdk = server.sdk()
    for number in range(CONVERSATIONS):
        messages = [{"role": "user", "content": f"Conversation {number}"}]
        for _ in range(2):
            answer = sdk.chat.completions.create(model="synthetic", messages=messages, max_tokens=4,
                                                 extra_headers={"X-Session-Id": f"soak-{number}"})
            messages += [{"role": "assistant", "content": answer.choices[0].message.content or "-"},
                         {"role": "user", "content": "Go on."}]
    return 2 * CONVERSATIONS


def leave(server):
    """Clients that go away after the head of a long answer."""
    sdk = server.sdk()
    for _ in range(LEAVERS):
        stream = sdk.chat.completions.create(model="synthetic", stream=True, max_tokens=4000,
                                             messages=[{"role": "user", "content": "Go."}], extra_body={"ignore_eos": True})
        stream.close()
    return LEAVERS


def load_and_unload(server):
    status, answer = server.admin("POST", "/clusters/other/load", {"model": "synthetic", "alias": "other", "batch": True})
    assert status == 200, answer
    status, answer = server.admin("POST", "/clusters/other/unload", {"alias": "other"})
    assert status == 200, answer


def ask(server, count, parallel):
    done = server.command("bench", "soak", server.url, "--model", "synthetic", "--generations", count, "--parallel", parallel,
                          "--max-tokens", 1, "--slowdown-max", 1000, "--json", timeout=1200)
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["failed"] == 0, report
    return report


class Promises:
    """Each is one case."""

    def __init__(self):
        self.passed = self.failed = 0

    def hold(self, what, true):
        self.passed += bool(true)
        self.failed += not true
        print(f"{'holds' if true else 'BROKEN'}: {what}", flush=True)


def hold_flat(promises, name, first, last):
    growth = last["memory"] / first["memory"] - 1
    promises.hold(f"{name}: memory {first['memory'] >> 10} KiB, at last {last['memory'] >> 10} ({100 * growth:+.2f} %)",
                  growth <= MEMORY_DRIFT)
    promises.hold(f"{name}: {first['threads']} threads, at last {last['threads']}", last["threads"] <= first["threads"])
    promises.hold(f"{name}: {first['files']} files, at last {last['files']}",
                  last["files"] <= first["files"] + FILES_OF_IDLE_CONNECTIONS)


def play(server, options):
    server.put_cluster(2)
    server.put_cluster([{"id": "local-3", "threads": 1}], "other")
    server.load(model="synthetic", batch_size=32)
    completed = left = 0
    seen, seconds = [], 0.0
    for turn in range(TURNS):
        report = ask(server, options.requests // TURNS, options.parallel)
        seconds += report["wall_s"]
        completed += report["generations"] + hold_conversations(server)
        left += leave(server)
        load_and_unload(server)
        support.wait_until("nothing is under way", lambda: server.pool("synthetic")["in_flight"] == 0)
        processes = {"server": server.pid, **{f"agent {i}": pid for i, pid in enumerate(server.agents())},
                     **{f"runner {i}": pid for i, pid in enumerate(server.runners())}}
        seen.append({name: status_of(pid) for name, pid in processes.items()})
        print(f"turn {turn + 1}: {completed} requests completed, {report['generations'] / report['wall_s']:.0f}/s", flush=True)
    promises = Promises()
    for name in seen[0]:
        hold_flat(promises, name, seen[1][name], seen[-1][name])
    counts = ended_requests(server)
    promises.hold(f"{completed} completed and {left} left, counted: {counts}",
                  sum(counts.values()) == completed + left and counts.get("200", 0) + counts.get("0", 0) == completed + left)
    print(f"{completed + left} requests; {seconds:.0f} s of asking")
    return promises


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--parallel", type=int, default=32)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flotilla-soak-") as folder:
        # Conversations are kept in little memory, so that it is full before the first turn ends.
        server = support.Server(pathlib.Path(folder), environment={"FLOTILLA_SYNTHETIC_STEP_US": "0", "FLOTILLA_SYNTHETIC_TOKEN_US": "0",
                                                                   "SESSION_STORE_BYTES": str(1 << 20)})
        try:
            promises = play(server, options)
        finally:
            server.stop()
    print(f"soak: {promises.passed} passed, {promises.failed} failed")
    return 1 if promises.failed else 0


if __name__ == "__main__":
    sys.exit(main())
