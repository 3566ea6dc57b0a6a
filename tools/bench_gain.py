#!/usr/bin/env python3
"""bench_gain.py [--rounds N] [--write FILE]: what continuous batching gains on this machine.

One node with all cores, the sample model, `flotilla bench burst` (20 requests of 100 tokens): our server
without and with batch, and the llama-server of the same engine source with -np 1 and -np 8. All four in
turns, medians of N rounds. Exit code 1 if our gain is below 1.35 or below 0.95 of llama-server's.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import support  # noqa: E402
import vendored  # noqa: E402


def our_server(folder, batch):
    server = support.Server(folder)
    server.load(nodes=[{"id": "local-1"}], batch=batch, context=2048)
    return server


def measure(start):
    server = start()
    try:
        done = support.run_command("bench", "burst", server.url, "--json", timeout=600)
    finally:
        server.stop()
    if done.returncode:
        sys.exit(f"bench_gain: not every answer was whole: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=pathlib.Path, help="also as JSON, for bench/results")
    options = parser.parse_args()
    program = vendored.build("llama-server")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def ours(batch):
            return lambda: our_server(pathlib.Path(tempfile.mkdtemp(dir=folder)), batch)

        sides = {
            "flotilla, no batch": ours(False),
            "flotilla, batch": ours(True),
            "llama-server -np 1": lambda: vendored.LlamaServer(program, folder, 1),
            "llama-server -np 8": lambda: vendored.LlamaServer(program, folder, 8),
        }
        seen = {side: [] for side in sides}
        for number in range(options.rounds):
            for side, start in sides.items():
                seen[side].append(measure(start))
                print(f"round {number + 1}: {side}: {seen[side][-1]['tokens_per_s']} tokens/s", flush=True)
    rate = {side: statistics.median(run["tokens_per_s"] for run in runs) for side, runs in seen.items()}
    gains = [rate["flotilla, batch"] / rate["flotilla, no batch"],
             rate["llama-server -np 8"] / rate["llama-server -np 1"]]
    print(f"\n{'':<22}{'wall':>9}{'tokens/s':>10}{'a stream':>10}{'waves':>7}{'TTFT p50':>10}{'gap p99':>10}")
    for side, runs in seen.items():
        def middle(get, runs=runs):
            return statistics.median(map(get, runs))
        print(f"{side:<22}{middle(lambda r: r['wall_s']):>7.1f} s{rate[side]:>10.1f}"
              f"{middle(lambda r: r['stream_tokens_per_s']):>10.1f}{middle(lambda r: r['waves']):>7.0f}"
              f"{middle(lambda r: r['ttft_ms']['p50']) / 1000:>8.2f} s{middle(lambda r: r['gap_ms']['p99']):>7.0f} ms")
    print(f"\ngain of batch: flotilla {gains[0]:.2f}, llama-server {gains[1]:.2f}, ratio {gains[0] / gains[1]:.2f}")
    checks = {"our gain is at least 1.35": gains[0] >= 1.35,
              "at least 0.95 of llama-server's": gains[0] >= 0.95 * gains[1]}
    for words, holds in checks.items():
        print(f"{'ok' if holds else 'FAILED'}: {words}")
    if options.write:
        options.write.write_text(json.dumps({"cores": os.cpu_count(), "gains": gains, "runs": seen}, indent=1) + "\n")
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
