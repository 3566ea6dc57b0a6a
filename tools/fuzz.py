#!/usr/bin/env python3
"""fuzz.py --build DIR --seconds N [TARGET...]: libFuzzer on the targets of tests/fuzz, as many at once as there are
cores. What it learns stays in DIR/corpus; an input that ends a target is shown and kept in DIR/findings: with its
fault mended it belongs to tests/fuzz/corpus."""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS = ROOT / "tests/fuzz/corpus"
INPUT_BYTES_MAX = 16384
MEMORY_MIB_MAX = 2048
INPUT_SECONDS_MAX = 10


def environment(target: str) -> dict[str, str]:
    return os.environ | {"FLOTILLA_FUZZ": target, "ASAN_OPTIONS": "detect_leaks=1"}


def fuzz(program: pathlib.Path, target: str, seconds: int, folder: pathlib.Path) -> tuple[str, int, str, list[str]]:
    learnt, findings = folder / "corpus" / target, folder / "findings" / target
    for place in (learnt, findings):
        place.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    done = subprocess.run(
        [program, f"-max_total_time={seconds}", f"-max_len={INPUT_BYTES_MAX}", f"-timeout={INPUT_SECONDS_MAX}",
         f"-rss_limit_mb={MEMORY_MIB_MAX}", "-use_value_profile=1", "-print_final_stats=1",
         f"-artifact_prefix={findings}/", learnt, SEEDS / target],
        env=environment(target), text=True, errors="replace", capture_output=True, check=False)
    found = sorted(str(file) for file in set(findings.iterdir()) - before)
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    return target, done.returncode, f"{runs[1] if runs else '?'} runs", found or ([done.stderr[-4000:]] if
                                                                                 done.returncode else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    folder = options.build.resolve()
    listed = subprocess.run([folder / "fuzz"], env=environment("?"), text=True, capture_output=True, check=True)
    known = listed.stdout.split()
    unknown = set(options.targets) - set(known)
    if unknown:
        sys.exit(f"fuzz: no target is named {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    targets = options.targets or known
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for target, code, runs, found in pool.map(lambda name: fuzz(folder / "fuzz", name, options.seconds, folder),
                                                  targets):
            print(f"{target:<16} {runs}", *(["found:"] + found if code else []), flush=True)
            failed += code != 0
    print(f"fuzz: {len(targets) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
