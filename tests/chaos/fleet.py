"""The server that suffers: its processes, through all of its restarts, and when it was away."""

import http.client
import os
import signal
import threading
import time

from support import ALIAS, Server, wait_until

NODES = ("local-1", "local-2", "local-3")
CONTEXT = 512
ENVIRONMENT = {"REPLICA_BACKOFF_MIN_S": "0.3", "REPLICA_BACKOFF_MAX_S": "2"}
STEADY_ENVIRONMENT = {"REPLICA_BACKOFF_MIN_S": "1", "REPLICA_BACKOFF_MAX_S": "2"}
# What a request may have been on its way before a signal and yet not be read.
UNREAD_S = 0.5


class Fleet:
    def __init__(self, folder, environment=None):
        self.folder = folder
        self.environment = environment or ENVIRONMENT
        self.server = Server(folder, environment=self.environment)
        self.lock = threading.Lock()
        self.away = []  # [sudden, since, until or None]
        self.reloads = []  # [since, until or None]
        self.server.load(nodes=[{"id": node} for node in NODES], context=CONTEXT, batch_size=4)

    # The gateway, which clients see end.

    def kill_gateway(self, away_s, pause):
        span = self._leaves(sudden=True)
        self.server.kill()
        pause(away_s)
        self._returns(span)

    def upgrade_gateway(self):
        span = self._leaves(sudden=False)
        self.server.signal(signal.SIGTERM)
        code = self.server.wait(150)
        self._returns(span)
        return code

    def _leaves(self, sudden):
        span = [sudden, time.monotonic(), None]
        with self.lock:
            self.away.append(span)
        return span

    def _returns(self, span):
        self.server = Server(self.folder, port=self.server.port, environment=self.environment)
        with self.lock:
            span[2] = time.monotonic()

    def excuse(self, since, until, begun):
        """Why a request of that time may have failed: clients see the end of the one gateway. `begun`:
        something of its answer had come."""
        with self.lock:
            for sudden, left, back in self.away:
                if until < left or (back is not None and since > back):
                    continue
                if sudden:
                    return "kill"
                if since > left - UNREAD_S and not begun:
                    return "no new work while it drains"
        return None

    # Its runners and agents, as they are at the moment.

    def runners(self):
        return self.server.runners()

    def agents(self):
        return self.server.agents()

    @staticmethod
    def signal(pid, number):
        """False: it has ended meanwhile."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    # Orders of an operator, who may be told that another one is under way.

    def order(self, method, path, body):
        """The status; None: the gateway went away meanwhile."""
        since = time.monotonic()
        try:
            return self.server.admin(method, path, body, timeout=170)[0]
        except (OSError, ValueError, http.client.HTTPException):
            if self.was_away(since, time.monotonic()):
                return None
            raise

    def was_away(self, since, until):
        with self.lock:
            return any(left <= until and (back is None or since <= back) for _, left, back in self.away)

    def reload(self):
        span = [time.monotonic(), None]
        with self.lock:
            self.reloads.append(span)
        try:
            return self.order("POST", "/clusters/local/reload", {})
        finally:
            span[1] = time.monotonic()

    def was_reloaded(self, since, until):
        """A stream stays in its generation; where a replica of one that goes away is lost, none is left."""
        with self.lock:
            return any(began <= until and (ended is None or since <= ended) for began, ended in self.reloads)

    def put_nodes(self, nodes):
        return self.order("PUT", "/clusters/local", {"nodes": [{"id": node} for node in nodes]})

    def replica(self, node, action):
        return self.order("POST", f"/clusters/local/pools/{ALIAS}/replicas/{node}/{action}", {})

    def wait_whole(self, seconds=90):
        """All nodes serve, nothing is under way."""
        def whole():
            replicas = {replica["node"]: replica["live"] for replica in self.server.replicas()}
            pool = self.server.pool()
            return (replicas == dict.fromkeys(NODES, True) and pool["in_flight"] == 0 and pool["queue_depth"] == 0
                    and all(replica["busy_count"] == 0 for replica in self.server.replicas()))

        wait_until("three live replicas and nothing in flight", whole, seconds)

    def stop(self):
        return self.server.stop()
