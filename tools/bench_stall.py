#!/usr/bin/env python3
"""bench_stall.py [--rounds N] [--prompt-tokens N]: who waits while a long prompt is computed.

`flotilla bench stall` (four streams, a long prompt, two small requests) against one node of ours with all cores, the
same held to one core, and a runner with llama.cpp's kernels. What the engine alone needs for the prompt is measured
beside (`flotilla bench engine`). Exit code 1 if a limit was exceeded in the median of the rounds.
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


class OnCores:
    """What is started within runs on these cores alone; this process, and so the client, goes back to all."""

    def __init__(self, cores):
        self.cores = cores

    def __enter__(self):
        self.before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cores)

    def __exit__(self, *_):
        os.sched_setaffinity(0, self.before)


def our_node(folder, cores):
    with OnCores(cores):
        server = support.Server(folder)
    server.load(nodes=[{"id": "local-1"}])
    return server


def stock_runner(folder, cores):
    with OnCores(cores):
        return support.Runner(folder, "--model", support.MODEL, "--width", "8", "--kernels", "stock",
                              "--threads", len(cores))


def engine_alone_ms(cores, tokens):
    with OnCores(cores):
        done = support.run_command("bench", "engine", support.MODEL, "--prompt-tokens", tokens, "--rounds", 1, "--json",
                                   timeout=600)
    if done.returncode:
        sys.exit(f"bench_stall: {done.stderr}")
    return json.loads(done.stdout)["prefill_ms"]


def measure(start, cores, tokens, factor, engine_ms):
    with tempfile.TemporaryDirectory() as name:
        server = start(pathlib.Path(name), cores)
        try:
            done = support.run_command("bench", "stall", server.url, "--prompt-tokens", tokens, "--prompt-factor", factor,
                                       *(["--engine-alone-ms", f"{engine_ms:.1f}"] if engine_ms else []), "--json",
                                       timeout=900)
        finally:
            server.stop()
    if not done.stdout:
        sys.exit(f"bench_stall: {done.stderr}")
    seen = json.loads(done.stdout)
    if seen["error"]:
        sys.exit(f"bench_stall: {seen['error']}")
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt-tokens", type=int, default=7800)
    options = parser.parse_args()
    every = os.sched_getaffinity(0)
    one = {min(every)}
    sides = {"flotilla": (our_node, every, 1.5, True), "flotilla, one core": (our_node, one, 1.5, True),
             "llama.cpp's kernels": (stock_runner, every, 2.0, False)}
    seen = {side: [] for side in sides}
    for number in range(options.rounds):
        for side, (start, cores, factor, with_engine) in sides.items():
            engine_ms = engine_alone_ms(cores, options.prompt_tokens) if with_engine else 0
            seen[side].append(measure(start, cores, options.prompt_tokens, factor, engine_ms))
            print(f"round {number + 1}: {side}: over {seen[side][-1]['over'] or 'nothing'}", flush=True)
    print(f"\n{'':<20}{'gap before':>11}{'p99 then':>10}{'max then':>10}{'small TTFT':>12}{'alone':>9}{'beside':>9}"
          f"{'ratio':>7}{'engine':>9}")
    checks = {}
    for side, runs in seen.items():
        def middle(get, runs=runs):
            return statistics.median(map(get, runs))

        before = middle(lambda r: r["gap_before_ms"]["p50"])
        p99, most = middle(lambda r: r["gap_during_ms"]["p99"]), middle(lambda r: r["gap_during_ms"]["max"])
        small = middle(lambda r: max(r["small_ttft_ms"]))
        alone, beside = middle(lambda r: r["alone_ms"]), middle(lambda r: r["beside_ms"])
        engine_ms = middle(lambda r: r["engine_alone_ms"])
        print(f"{side:<20}{before:>8.1f} ms{p99:>7.0f} ms{most:>7.0f} ms{small:>9.0f} ms{alone / 1000:>7.2f} s"
              f"{beside / 1000:>7.2f} s{beside / alone:>7.2f}{engine_ms / 1000:>7.2f} s")
        checks |= {f"{side}: gap p99 within 3 x before or 60 ms": p99 <= max(3 * before, 60),
                   f"{side}: gap max within 4 x before or 100 ms": most <= max(4 * before, 100),
                   f"{side}: small requests within 1 s": small <= 1000,
                   f"{side}: the prompt within {sides[side][2]} x alone": beside <= sides[side][2] * alone}
        if engine_ms:
            checks[f"{side}: alone within 1.1 x the engine's time"] = alone <= 1.1 * engine_ms
    for words, holds in checks.items():
        print(f"{'ok' if holds else 'FAILED'}: {words}")
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
