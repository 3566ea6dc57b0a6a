"""Faults in a random order, from a seed, against the real program and model, while clients check every answer.

  python tests/chaos [--schedule NAME] [--seed N] [--minutes N | --seconds N] [--every S] [--show]

Schedules: all (everything, in a random order), kills (kill -9 of a random replica of three every 3 s), hangs (SIGSTOP
of one every 8 s).
"""

import argparse
import os
import pathlib
import random
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import schedule  # noqa: E402
from faults import Faults  # noqa: E402
from fleet import STEADY_ENVIRONMENT, Fleet  # noqa: E402
from ledger import Ledger  # noqa: E402
from support import wait_until  # noqa: E402
from users import Crowd, User  # noqa: E402

USERS = 5
SERVER_FILES_MAX = 160  # of an idle server: what stays open to runners, and room


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="default: 1, and with --minutes another one each time")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--schedule", choices=["all", *schedule.STEADY], default="all")
    parser.add_argument("--every", type=float, help="seconds from a fault to the next; of all: in the mean, default 3")
    parser.add_argument("--show", action="store_true", help="print the schedule only")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = 1 if options.minutes is None else secrets.randbelow(1 << 31)
    if options.minutes is not None:
        options.seconds = options.minutes * 60
    return options


def make_events(options):
    if options.schedule == "all":
        return schedule.make(options.seed, options.seconds, options.every or 3)
    return schedule.make_steady(options.schedule, options.seed, options.seconds, options.every)


def make_users(fleet, seed):
    users = []
    for number in range(USERS):
        canary = "".join(random.Random(f"{seed} canary {number}").choices("bcdfghjklmnpqrstvwxz", k=8))
        status, key = fleet.server.admin("POST", "/keys", {"name": f"user-{number}"})
        assert status == 201, key
        users.append(User(fleet, number, key["secret"], canary))
    recording = [threading.Thread(target=user.record, daemon=True) for user in users]
    for thread in recording:
        thread.start()
    for thread in recording:
        thread.join()
    assert all(len(user.wanted) == len(user.questions) for user in users), "some answers could not be recorded"
    return users


class Promises:
    """Each is one case."""

    def __init__(self):
        self.passed = self.failed = 0

    def hold(self, what, true, detail=""):
        self.passed += bool(true)
        self.failed += not true
        print(f"{'holds' if true else 'BROKEN'}: {what}{f' ({detail})' if detail else ''}", flush=True)


def logs_of(folder):
    return [file for file in folder.rglob("*") if file.is_file() and file.suffix == ".log"]


def whole_again(fleet):
    try:
        fleet.wait_whole()
    except AssertionError as error:
        return str(error)
    return None


def judge(promises, fleet, users, ledger, stuck):
    wrong = dict(ledger.wrong)
    for name, kinds in {"no answer is truncated": ["truncated"], "none repeats": ["repeated"],
                        "none loses or changes a character": ["lost", "changed"],
                        "none shows another user's words": ["crossed"], "usage is as it was": ["miscounted"],
                        "every request ends": ["stuck"], "bad requests get their status": ["bad request"],
                        "an operator's orders are answered": ["order"]}.items():
        promises.hold(name, not any(wrong.pop(kind, 0) for kind in kinds))
    promises.hold("no other request fails", not wrong, ", ".join(f"{n} {kind}" for kind, n in wrong.items()))
    promises.hold("answers are completed, some of them after a replica was lost",
                  ledger.counts["completed"] > USERS and ledger.counts["completed after a replica was lost"])
    promises.hold("all replicas come back and nothing stays in flight", stuck is None, stuck or "")
    files = pathlib.Path(f"/proc/{fleet.server.pid}/fd")
    try:
        wait_until("the clients' files are closed", lambda: len(list(files.iterdir())) <= SERVER_FILES_MAX, 15)
        leak = ""
    except AssertionError as error:
        leak = f"{error}; {len(list(files.iterdir()))} are open"
    promises.hold("no file stays open", not leak, leak)
    words = [word.encode() for user in users for word in (user.canary, user.secret)]
    told = [str(file) for file in logs_of(fleet.folder) if any(word in file.read_bytes() for word in words)]
    promises.hold("no log has a prompt or a key", not told and logs_of(fleet.folder), ", ".join(told))


def judge_steady(promises, ledger, events):
    """A schedule that hits nobody shows nothing; and the gateway was always there: nothing is excused."""
    hit = ledger.counts["runners killed"] + ledger.counts["processes stopped"]
    promises.hold("nearly all faults hit a replica", hit >= 0.9 * events > 0, f"{hit} of {events}")
    promises.hold("no request has an excuse", not ledger.excused, str(dict(ledger.excused)))


def play(options, folder):
    ledger, promises = Ledger(), Promises()
    began = time.monotonic()
    fleet = Fleet(folder, None if options.schedule == "all" else STEADY_ENVIRONMENT)
    events = make_events(options)
    try:
        users = make_users(fleet, options.seed)
        pool = fleet.server.pool()
        print(f"three replicas, {len(users) * len(users[0].questions)} answers are known; exact_resume: "
              f"{pool['exact_resume']}; after {time.monotonic() - began:.0f} s", flush=True)
        crowd = Crowd(fleet, users, options.seed, ledger, pool["exact_resume"])
        faults = Faults(fleet, events, crowd.ask_many, ledger)
        crowd.start()
        faults.run(options.seconds)
        print("the faults are over", flush=True)
        faults.undo()
        crowd.stop()
        stuck = whole_again(fleet)
        ledger.show()
        judge(promises, fleet, users, ledger, stuck)
        if options.schedule != "all":
            judge_steady(promises, ledger, len(events))
        runners = fleet.runners() + fleet.agents()
        promises.hold("Ctrl-C ends it with 0", fleet.stop() == 0)
        try:
            wait_until("runners and agents have ended", lambda: not fleet.runners() and not fleet.agents(), 15)
        except AssertionError as error:
            promises.hold("no process of its outlives it", False, str(error))
        else:
            promises.hold("no process of its outlives it", runners)
    finally:
        end_all(fleet)
    return promises, ledger


def end_all(fleet):
    """Whatever happened, no process of ours is left."""
    fleet.server.kill()
    for pid in fleet.agents() + fleet.runners():
        fleet.signal(pid, signal.SIGKILL)


def main():
    options = options_of(sys.argv[1:])
    events = make_events(options)
    print(f"seed {options.seed}, {options.seconds:.0f} s, {len(events)} faults", flush=True)
    if options.show:
        print(*events, sep="\n")
        return 0
    # Not removed where a promise is broken: the logs tell why.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="flotilla-chaos-", dir=os.environ.get("TMPDIR")))
    promises, ledger = play(options, folder)
    if promises.failed:
        every = f" --every {options.every:g}" if options.every else ""
        print(f"again: ./test chaos --schedule {options.schedule} --seed {options.seed} --seconds {options.seconds:.0f}"
              f"{every}")
        print(f"its logs are in {folder}")
    else:
        shutil.rmtree(folder)
    print(f"{promises.passed} passed, {promises.failed} failed")
    return 1 if promises.failed else 0


if __name__ == "__main__":
    sys.exit(main())
