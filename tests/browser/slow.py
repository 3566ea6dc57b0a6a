"""A machine that is slow, for what is over too soon to be looked at."""

import contextlib
import os
import signal
import threading

STOPPED_S, RUNNING_S = 0.15, 0.01


@contextlib.contextmanager
def slow_runners(server):
    """The runners of the server, those that begin meanwhile included, compute a sixteenth of the time."""
    over = threading.Event()

    def send(pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def hold():
        while not over.is_set():
            pids = server.runners()
            send(pids, signal.SIGSTOP)
            over.wait(STOPPED_S)
            send(pids, signal.SIGCONT)
            over.wait(RUNNING_S)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    try:
        yield
    finally:
        over.set()
        holder.join()
