"""Each kind of fault of schedule.py, done to a fleet."""

import signal
import threading
import time

from fleet import NODES

# An order may be refused because another is under way or its node is left out, or fail because what it
# needs was just killed.
ORDER_STATUS = {None, 200, 201, 404, 409, 502, 503}


class Faults:
    """Does a schedule's events in order. Some have a second part, later."""

    def __init__(self, fleet, events, ask_many, ledger):
        self.fleet, self.events, self.ask_many, self.ledger = fleet, events, ask_many, ledger
        self.later = []  # timers: a fault ends in time, whatever the next ones take
        self.orders = []
        self.clock = threading.Event()  # never set: what to wait with

    def run(self, seconds):
        began = time.monotonic()
        end = began + seconds
        for event in self.events:
            self._until(began + event.at)
            print(event, flush=True)
            getattr(self, event.fault)(event)
        self._until(end)

    def undo(self):
        """What is still stopped, drained or left out goes back."""
        for timer in self.later:
            timer.cancel()
            if not timer.finished_its_work:
                timer.function()
        for order in self.orders:
            order.join(170)
            if order.is_alive():
                self.ledger.blame("stuck", "an order of the operator has no answer after 170 s")

    def _until(self, when):
        self.clock.wait(max(0.0, when - time.monotonic()))

    def _after(self, seconds, what):
        def do():
            timer.finished_its_work = True
            what()

        timer = threading.Timer(seconds, do)
        timer.daemon, timer.finished_its_work = True, False
        self.later.append(timer)
        timer.start()

    def _order(self, what, *arguments):
        def run():
            try:
                status = what(*arguments)
                if status not in ORDER_STATUS:
                    self.ledger.blame("order", f"{what.__name__}{arguments}: {status}")
            except Exception as error:  # noqa: BLE001: it is one of the things that must not be
                self.ledger.blame("order", repr(error))

        self.orders.append(threading.Thread(target=run, daemon=True))
        self.orders[-1].start()

    def _pick(self, pids, event):
        return pids[event.pick % len(pids)] if pids else None

    def _pause(self, pid, seconds):
        if pid is not None and self.fleet.signal(pid, signal.SIGSTOP):
            self.ledger.count("processes stopped")
            self._after(seconds, lambda: self.fleet.signal(pid, signal.SIGCONT))

    # Runners.

    def kill_runner(self, event):
        self._signal_runner(event, signal.SIGKILL)

    def crash_runner(self, event):
        self._signal_runner(event, signal.SIGSEGV)

    def _signal_runner(self, event, number):
        pid = self._pick(self.fleet.runners(), event)
        if pid is not None and self.fleet.signal(pid, number):
            self.ledger.count("runners killed")

    def kill_all_runners(self, _):
        for pid in self.fleet.runners():
            self.fleet.signal(pid, signal.SIGKILL)

    def kill_all_runners_but_one(self, event):
        pids = self.fleet.runners()
        kept = self._pick(pids, event)
        for pid in pids:
            if pid != kept:
                self.fleet.signal(pid, signal.SIGKILL)

    def pause_runner(self, event):
        self._pause(self._pick(self.fleet.runners(), event), event.lasts)

    def hang_runner(self, event):
        """Until it is found to hang. At the end it goes on, if it was idle."""
        self._pause(self._pick(self.fleet.runners(), event), 600)

    # Agents.

    def kill_agent(self, event):
        pid = self._pick(self.fleet.agents(), event)
        if pid is not None:
            self.fleet.signal(pid, signal.SIGKILL)

    def pause_agent(self, event):
        self._pause(self._pick(self.fleet.agents(), event), event.lasts)

    silence_agent = pause_agent

    # The gateway.

    def kill_gateway(self, event):
        self.fleet.kill_gateway(event.lasts, self.clock.wait)

    kill_gateway_and_its_runners = kill_gateway  # it is away for longer than AGENT_GRACE_S

    def upgrade_gateway(self, _):
        code = self.fleet.upgrade_gateway()
        if code != 0:
            self.ledger.blame("order", f"the gateway ended with {code} on SIGTERM")

    def pause_gateway(self, event):
        self._pause(self.fleet.server.pid, event.lasts)

    # The operator, and many clients at once.

    def reload(self, _):
        self._order(self.fleet.reload)

    def restart_replica(self, event):
        self._order(self.fleet.replica, NODES[event.pick % len(NODES)], "restart")

    def drain_replica(self, event):
        node = NODES[event.pick % len(NODES)]
        self._order(self.fleet.replica, node, "drain")
        self._after(event.lasts, lambda: self._order(self._resume, node))

    def _resume(self, node):
        return self._insist(self.fleet.replica, node, "resume")

    def edit_cluster(self, event):
        left_out = NODES[event.pick % len(NODES)]
        self._order(self.fleet.put_nodes, [node for node in NODES if node != left_out])
        self._after(event.lasts, lambda: self._order(self._put_all))

    def _put_all(self):
        return self._insist(self.fleet.put_nodes, NODES)

    def _insist(self, what, *arguments):
        """Again while another order is under way or the gateway away."""
        status = None
        for _ in range(200):
            status = what(*arguments)
            if status not in (None, 409):
                break
            self.clock.wait(0.3)
        return status

    def burst(self, event):
        self.ask_many(event.pick)
