#!/usr/bin/env python3
"""bench_kernels.py [--rounds N] [--models sample,Q4_0,...] [--write FILE]: our kernels and llama.cpp's own.

build/release/bench/decode and the vendored llama-batched-bench, both with all cores, the same prompts and tokens, in
turns, medians of N rounds: the sample model, and random models of a 1B shape (tools/random_model.py). Prints both and
the ratios; exit code 1 if a ratio is below what is promised.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import support  # noqa: E402
import vendored  # noqa: E402

import random_model  # noqa: E402

# model: what is promised for 1 stream, 8 streams and the prompt, as a multiple of llama.cpp's.
PROMISED = {"sample": (2.5, 7.5, 4.5), "Q4_0": (1.15, 2.6, 1.7), "Q4_K_M": (1.15, 3.7, 1.7), "Q8_0": (1.15, 3.5, 1.7)}
PROMPT, TOKENS, PREFILL = 128, 64, 512


def output(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"bench_kernels: {command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def ours(model, streams, kernels="flotilla"):
    text = output([support.BINARY.parent / "bench/decode", "--model", model, "--threads", os.cpu_count(), "--streams",
                   ",".join(map(str, streams)), "--prompt", PROMPT, "--tokens", TOKENS, "--prefill", PREFILL,
                   "--rounds", 1, "--kernels", kernels])
    rates = {int(n): float(rate) for n, rate in re.findall(r"streams (\d+): ([\d.]+)", text)}
    return rates | {"prefill": float(re.search(r"prefill \d+: ([\d.]+)", text)[1])}


def stock(program, model, streams):
    def run(prompt, tokens, count):
        text = output([program, "-m", model, "-c", max(count) * (prompt + tokens), "-b", 2048, "-ub", 512, "-npp", prompt,
                       "-ntg", tokens, "-npl", ",".join(map(str, count)), "-t", os.cpu_count(), "-tb", os.cpu_count(),
                       "--output-format", "jsonl"])
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    rates = {row["pl"]: row["speed_tg"] for row in run(PROMPT, TOKENS, streams)}
    return rates | {"prefill": run(PREFILL, 1, [1])[0]["speed_pp"]}


def model_file(name):
    if name == "sample":
        return support.MODEL
    file = ROOT / f"build/models/random-1b-{name}.gguf"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        random_model.write(file.with_suffix(".part"), name, "1b", support.MODEL)
        file.with_suffix(".part").rename(file)
    return file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=",".join(PROMISED))
    parser.add_argument("--streams", default="1,8,16,32")
    parser.add_argument("--write", type=pathlib.Path, help="also as JSON")
    options = parser.parse_args()
    streams = [int(count) for count in options.streams.split(",")]
    program = vendored.build("llama-batched-bench")
    passed = failed = 0
    results = {}
    for name in options.models.split(","):
        file = model_file(name)
        seen = {"flotilla": [], "llama.cpp": []}
        for _ in range(options.rounds):
            seen["flotilla"].append(ours(file, streams))
            seen["llama.cpp"].append(stock(program, file, streams))
        results[name] = seen
        rates = {side: {case: statistics.median(run[case] for run in runs) for case in runs[0]}
                 for side, runs in seen.items()}
        cases = [*streams, "prefill"]
        print(f"\n{name:<12}" + "".join(f"{str(case):>10}" for case in cases) + "   tok/s", flush=True)
        for side, row in rates.items():
            print(f"{side:<12}" + "".join(f"{row[case]:>10.0f}" for case in cases))
        ratio = {case: rates["flotilla"][case] / rates["llama.cpp"][case] for case in cases}
        print(f"{'ratio':<12}" + "".join(f"{ratio[case]:>10.2f}" for case in cases), flush=True)
        for case, least in zip((1, 8, "prefill"), PROMISED[name]):
            if case not in ratio:
                continue
            holds = ratio[case] >= least
            passed, failed = passed + holds, failed + (not holds)
            print(f"{'ok' if holds else 'FAILED'}: {name} {case}: {ratio[case]:.2f}, at least {least}")
    if options.write:
        options.write.write_text(json.dumps({"cores": os.cpu_count(), "runs": results}, indent=1) + "\n")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
