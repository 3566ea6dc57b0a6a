"""What came of every request."""

import collections
import threading

SHOWN = 12  # of what went wrong, in words


class Ledger:
    """Any thread may write."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.excused = collections.Counter()  # by a fault of the table that clients see
        self.wrong = collections.Counter()
        self.told = []

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def excuse(self, why):
        with self.lock:
            self.excused[why] += 1

    def blame(self, kind, detail):
        with self.lock:
            self.wrong[kind] += 1
            if len(self.told) < SHOWN:
                self.told.append(f"{kind}: {detail}")

    def show(self):
        with self.lock:
            print("requests: " + ", ".join(f"{number} {what}" for what, number in sorted(self.counts.items())))
            print("ended as the design says: " + (", ".join(f"{number} {why}" for why, number in
                                                              sorted(self.excused.items())) or "none"))
            if self.wrong:
                print("wrong: " + ", ".join(f"{number} {kind}" for kind, number in sorted(self.wrong.items())))
                print(*self.told, sep="\n")
