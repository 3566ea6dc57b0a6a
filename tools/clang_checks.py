#!/usr/bin/env python3
"""Checks of our C++ by clang's tools, in parallel on all cores.

  clang_checks.py --build DIR format|tidy|libcxx... [--seconds N]

  format   clang-format has nothing to change
  tidy     clang-tidy by .clang-tidy; what was clean is not checked again until it or a header of it changes;
           with --seconds what fits, the files changed last first
  libcxx   each unit parses with clang 19 and libc++, a stand-in for macOS
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = pathlib.Path(sys.executable).parent
FOLDERS = ("src", "sim", "tests", "bench")


def ours(suffixes: tuple[str, ...]) -> list[pathlib.Path]:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in suffixes]
    return sorted(files)


def changed_first(files: list[pathlib.Path]) -> list[pathlib.Path]:
    """By what git says of the last changes; files that it does not know are new and come first."""
    log = subprocess.run(["git", "log", "-n", "200", "--name-only", "--format="], cwd=ROOT, text=True,
                         capture_output=True, check=False).stdout
    age: dict[pathlib.Path, int] = {}
    for line in log.splitlines():
        age.setdefault(ROOT / line, len(age))
    dirty = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=ROOT, text=True, capture_output=True,
                           check=False).stdout
    for line in dirty.splitlines():
        age[ROOT / line[3:]] = -1
    return sorted(files, key=lambda file: age.get(file, len(age)))


def without_precompiled(command: str) -> str:
    """Clang cannot read g++'s precompiled headers; each unit includes what it uses."""
    return re.sub(r" -Winvalid-pch| -fpch-preprocess| -include \S+/cmake_pch\.hxx", "", command)


class Units:
    """The compile commands of our own units in a build folder."""

    def __init__(self, build: pathlib.Path):
        database = build / "compile_commands.json"
        if not database.exists():
            sys.exit(f"clang_checks: {database} is missing: build first")
        self.by_file: dict[pathlib.Path, dict] = {}
        for entry in json.loads(database.read_text()):
            file = pathlib.Path(entry["directory"], entry["file"]).resolve()
            if file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in FOLDERS:
                entry["command"] = without_precompiled(entry["command"])
                self.by_file.setdefault(file, entry)

    def arguments(self, file: pathlib.Path) -> list[str]:
        """Flags of a unit, without compiler, launcher, input and output."""
        words = shlex.split(self.by_file[file]["command"])
        start = next(i for i, word in enumerate(words) if word.startswith(("-D", "-I", "-i")) and "=" not in word[:2])
        kept: list[str] = []
        skip = 0
        for word in words[start:]:
            if skip:
                skip -= 1
            elif word in ("-o", "-c", "-MT", "-MF"):
                skip = 1
            elif word != "-MD":
                kept.append(word)
        return kept


class Clean:
    """Units that clang-tidy found nothing in, kept between builds and clones: by all that it reads of ours."""

    def __init__(self, build: pathlib.Path):
        caches = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        self.folder = caches / "flotilla" / "tidy"
        self.common = self._hash([ROOT / ".clang-tidy", ROOT / "tests/requirements.txt"])
        self.reads: dict[pathlib.Path, list[pathlib.Path]] = {}
        listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], text=True, capture_output=True, check=False).stdout
        for block in listed.split("\n\n"):
            files = [(build / line.strip()).resolve() for line in block.splitlines()[1:]]
            own = [file for file in files if file.is_relative_to(ROOT) and not file.is_relative_to(build)]
            if own:
                self.reads[own[0]] = own

    @staticmethod
    def _hash(files: list[pathlib.Path], *words: str) -> str:
        digest = hashlib.sha256("\0".join(words).encode())
        for file in files:
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
        return digest.hexdigest()

    def _mark(self, file: pathlib.Path, command: str) -> pathlib.Path | None:
        """None: what it reads is not known."""
        files = self.reads.get(file)
        known = files and all(one.exists() for one in files)
        return self.folder / self._hash(sorted(files), self.common, command) if known else None

    def has(self, file: pathlib.Path, command: str) -> bool:
        mark = self._mark(file, command)
        return mark is not None and mark.exists()

    def add(self, file: pathlib.Path, command: str) -> None:
        mark = self._mark(file, command)
        if mark is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            mark.touch()
        except OSError:
            pass  # no place to remember: it is checked again


def run_all(name: str, jobs: dict[pathlib.Path, list[str]], seconds: float, directory: pathlib.Path,
            passed_before: int = 0, when_clean=lambda file: None) -> bool:
    """Runs a command a file; prints what failed and the count."""
    began = time.monotonic()
    passed, failed = passed_before, 0

    def run(file: pathlib.Path):
        if seconds and time.monotonic() - began > seconds:
            return file, None
        return file, subprocess.run(jobs[file], cwd=directory, text=True, capture_output=True, check=False)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, result in pool.map(run, jobs):
            if result is None:
                continue
            if result.returncode == 0:
                passed += 1
                when_clean(file)
                continue
            failed += 1
            print(f"{name}: {file.relative_to(ROOT)}\n{result.stdout}{result.stderr}", flush=True)
    left = len(jobs) + passed_before - passed - failed
    if left:
        print(f"{name}: {left} of {len(jobs)} files left out, the time of {seconds:.0f} s is over")
    print(f"{name}: {passed} passed, {failed} failed")
    return failed == 0


def check_format(build: pathlib.Path, seconds: float) -> bool:
    del build, seconds
    command = [str(VENV / "clang-format"), "--dry-run", "-Werror"]
    return run_all("format", {file: [*command, str(file)] for file in ours((".h", ".cpp"))}, 0, ROOT)


def check_tidy(build: pathlib.Path, seconds: float) -> bool:
    units = Units(build)
    files = changed_first([file for file in units.by_file if not file.name.endswith("_test.cpp")])
    commands = build / "clang-tidy"
    commands.mkdir(exist_ok=True)
    (commands / "compile_commands.json").write_text(json.dumps(list(units.by_file.values())))
    command = [str(VENV / "clang-tidy"), "--quiet", "-p", str(commands), "--warnings-as-errors=*"]
    clean = Clean(build)
    flags = {file: " ".join(units.arguments(file)).replace(str(ROOT), "") for file in files}
    left = [file for file in files if not clean.has(file, flags[file])]
    print(f"tidy: {len(files) - len(left)} of {len(files)} files are as they were when they were clean")
    return run_all("tidy", {file: [*command, str(file)] for file in left}, seconds, ROOT, len(files) - len(left),
                   lambda file: clean.add(file, flags[file]))


def check_libcxx(build: pathlib.Path, seconds: float) -> bool:
    del seconds
    units = Units(build)
    jobs = {file: ["clang++-19", "-stdlib=libc++", "-fsyntax-only", *units.arguments(file), str(file)]
            for file in sorted(units.by_file)}
    return run_all("libcxx", jobs, 0, build)


def main() -> int:
    checks = {"format": check_format, "tidy": check_tidy, "libcxx": check_libcxx}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("checks", nargs="+", choices=checks)
    options = parser.parse_intermixed_args()
    results = [checks[name](options.build.resolve(), options.seconds) for name in options.checks]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
