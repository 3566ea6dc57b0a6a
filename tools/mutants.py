#!/usr/bin/env python3
"""mutants.py --build DIR: does the simulator find a broken rule?

Each mutant is one rule of src/cluster, broken by hand. It is compiled with the flags of the build folder, linked
into a cluster_sim of its own and must be found: by a broken promise, or by a CHECK. A mutant that survives is a
promise that no checker watches.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What is broken; the file; the rule; what stands in its place.
MUTANTS = [
    ("backoff grows without bound", "replica.cpp", "backoff_.next(random)", "backoff_.next(random) * 3"),
    ("a replica is given up after some attempts", "replica.cpp",
     "if (state_ == ReplicaState::Waiting && node_up_ && now >= retry_at_) return launch(now);",
     "if (state_ == ReplicaState::Waiting && node_up_ && now >= retry_at_ && attempts_ < 4) return launch(now);"),
    ("a node that is back waits for its backoff", "replica.cpp",
     "if (state_ == ReplicaState::Stopped || !was_away) return {};\n  return launch(now);",
     "if (state_ == ReplicaState::Stopped || !was_away) return {};\n  retry_at_ = now + settings_.backoff_min;\n"
     "  state_ = ReplicaState::Waiting;\n  return {};"),
    ("a request goes on in another generation", "dispatch.cpp",
     "if (wanted.generation && *wanted.generation != entry.generation) return false;", ""),
    ("one place too many", "pool_replicas.cpp", "std::max(0, settings.ahead);", "std::max(0, settings.ahead) + 1;"),
    ("a draining replica is stopped with its requests", "pool_replicas.cpp",
     "if (unit.replica.state() != ReplicaState::Draining || !unit.inside.empty()) return;",
     "if (unit.replica.state() != ReplicaState::Draining) return;"),
    ("a poison request may crash a third runner", "pool_tickets.cpp",
     "flight.crashes >= 2 || flight.named_crashes >= 2", "flight.crashes >= 3"),
    ("keys are served by arrival alone", "queue.cpp",
     "set_counter(best->second, key.counter + static_cast<double>(tokens) / key.weight);", ""),
    ("a hang is not looked for", "replica.cpp", "if (std::optional<std::string> hang = watchdog_.check(busy, now)) {",
     "if (std::optional<std::string> hang = watchdog_.check(busy, now); false) {"),
    ("a free place waits for the next request", "pool_tickets.cpp",
     "s.restart_if_useless(unit, now);\n  s.pump(replica, now);", "s.restart_if_useless(unit, now);"),
    ("what has stopped keeps its place for ever", "pool_replicas.cpp",
     "if (vacant.empty()) return std::nullopt;", "return std::nullopt;"),
    ("a launch is there twice", "pool_replicas.cpp", "s.unit(*vacant).replica.launch().number + 1", "0"),
]
# Histories that meet every fault; a mutant that lives through all of them was not found.
HISTORIES = ["--seed", "1", "--runs", "60", "--nodes", "8", "--hours", "1"]
SECONDS = 120  # a mutant that stands still is found, too


def link_command(build: pathlib.Path) -> str:
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "cluster_sim"], text=True, capture_output=True,
                              check=True).stdout
    return commands.splitlines()[-1]


def hunt(mutant, build: pathlib.Path, compile_command: str, link: str, folder: pathlib.Path) -> str | None:
    """What gave the mutant away; None: nothing did."""
    name, file, rule, instead = mutant
    text = (ROOT / "src/cluster" / file).read_text()
    if text.count(rule) != 1:
        sys.exit(f"mutants: '{name}': its rule stands {text.count(rule)} times in {file}, not once; see to the table")
    source = folder / file
    source.write_text(text.replace(rule, instead))
    words = shlex.split(compile_command)
    words = [word for word in words if not word.endswith("ccache")]
    words[words.index("-o") + 1] = str(folder / "mutant.o")
    words[-1] = str(source)
    made = subprocess.run([*words, "-Wno-error", "-w"], cwd=build, text=True, capture_output=True, check=False)
    if made.returncode:
        sys.exit(f"mutants: '{name}' does not compile:\n{made.stderr}")
    # Its object comes first, so the archive's own is not asked for.
    before, after = link.split(" -o ", 1)
    output, rest = after.split(" ", 1)
    command = f"{before} {folder / 'mutant.o'} -o {folder / 'sim'} {rest}"
    linked = subprocess.run(["sh", "-c", command], cwd=build, text=True, capture_output=True, check=False)
    if linked.returncode:
        sys.exit(f"mutants: '{name}' does not link into {output}:\n{linked.stderr}")
    try:
        done = subprocess.run([folder / "sim", *HISTORIES], text=True, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    if done.returncode == 0:
        return None
    said = [line for line in (done.stdout + done.stderr).splitlines() if "BROKEN" in line or "CHECK" in line]
    return said[0].strip() if said else f"exit code {done.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    commands = {pathlib.Path(entry["file"]).name: entry["command"]
                for entry in json.loads((build / "compile_commands.json").read_text())
                if "/src/cluster/" in entry["file"]}
    link = link_command(build)
    found = 0
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def one(number: int):
            folder = pathlib.Path(name, str(number))
            folder.mkdir()
            return hunt(MUTANTS[number], build, commands[MUTANTS[number][1]], link, folder)

        for mutant, said in zip(MUTANTS, pool.map(one, range(len(MUTANTS)))):
            found += said is not None
            print(f"{'found' if said else 'SURVIVED'}: {mutant[0]}{': ' + said if said else ''}", flush=True)
    print(f"mutants: {found} passed, {len(MUTANTS) - found} failed")
    return 0 if found == len(MUTANTS) else 1


if __name__ == "__main__":
    sys.exit(main())
