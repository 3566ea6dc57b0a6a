#!/usr/bin/env python3
"""coverage.py --build DIR [--least FOLDER=PERCENT]...: which of our lines have run, by gcov's counts in a build folder.

Prints each folder of src and the files with most lines that did not run. Exit code 1 where a folder (src: all of
them) is below what is wanted of it. Tests are not counted themselves.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHOWN = 15


def compiler_gcov(build: pathlib.Path) -> str:
    """Counts are read by the compiler's own version."""
    cache = (build / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]
    version = subprocess.run([compiler, "-dumpversion"], text=True, capture_output=True, check=True).stdout
    return f"gcov-{version.strip().split('.')[0]}"


def counts_of(notes: pathlib.Path, gcov: str):
    """(file below src, line, how often it ran) of one unit; a unit that never ran has zeros."""
    done = subprocess.run([gcov, "--json-format", "--stdout", str(notes)], cwd=notes.parent, text=True, capture_output=True,
                          check=True)
    found = []
    for text in filter(None, done.stdout.splitlines()):
        told = json.loads(text)
        for file in told["files"]:
            path = (pathlib.Path(told["current_working_directory"]) / file["file"]).resolve()
            if path.is_relative_to(ROOT / "src") and not path.name.endswith("_test.cpp"):
                name = path.relative_to(ROOT / "src").as_posix()
                found += [(name, line["line_number"], line["count"]) for line in file["lines"]]
    return found


def read_lines(build: pathlib.Path) -> dict[str, dict[int, int]]:
    """File -> line -> how often it ran, in whichever unit."""
    gcov = compiler_gcov(build)
    notes = sorted(file for folder in ("src", "sim") for file in (build / folder).rglob("*.gcno"))
    if not any((build / "src").rglob("*.gcda")):
        sys.exit(f"coverage: nothing has run yet in {build}")
    lines: dict[str, dict[int, int]] = collections.defaultdict(dict)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda file: counts_of(file, gcov), notes):
            for name, line, count in found:
                lines[name][line] = lines[name].get(line, 0) + count
    return lines


def share(files: list[dict[int, int]]) -> tuple[int, int, float]:
    total = sum(map(len, files))
    ran = sum(count > 0 for file in files for count in file.values())
    return ran, total, 100 * ran / total if total else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--least", action="append", default=[], metavar="FOLDER=PERCENT")
    options = parser.parse_args()
    lines = read_lines(options.build.resolve())
    folders = {"src": list(lines.values())}
    for name in sorted(lines):
        folders.setdefault("src/" + name.split("/")[0], []).append(lines[name])
    for folder, files in folders.items():
        ran, total, percent = share(files)
        print(f"{folder:<16} {ran:>6} of {total:>6} lines  {percent:5.1f} %")
    print("\nmost lines that did not run:")
    missed = {name: sum(count == 0 for count in file.values()) for name, file in lines.items()}
    for name in sorted(missed, key=missed.get, reverse=True)[:SHOWN]:
        print(f"  {missed[name]:>5} of {len(lines[name]):>5}  src/{name}")
    failed = 0
    for wanted in options.least:
        folder, least = wanted.split("=")
        percent = share(folders.get(folder, []))[2]
        failed += percent < float(least)
        print(f"{folder}: {percent:.1f} %, {least} % are wanted")
    print(f"coverage: {len(options.least) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
