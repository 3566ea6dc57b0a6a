"""Streams without end, and what it costs the page to follow them."""

import contextlib
import http.client
import json
import threading


def keep_busy(server, over):
    """One stream after the other until it is over."""
    body = json.dumps({"model": "synthetic", "stream": True, "max_tokens": 400, "ignore_eos": True,
                       "messages": [{"role": "user", "content": "x"}]})
    while not over.is_set():
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        try:
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            while not over.is_set() and answer.read1(65536):
                pass
        except (OSError, http.client.HTTPException):
            if not over.is_set():
                raise
        finally:
            connection.close()


@contextlib.contextmanager
def busy_streams(server, count):
    """So many streams at once, of a server that has loaded `synthetic`."""
    over = threading.Event()
    streams = [threading.Thread(target=keep_busy, args=(server, over), daemon=True) for _ in range(count)]
    for stream in streams:
        stream.start()
    try:
        yield
    finally:
        over.set()
        for stream in streams:
            stream.join(60)


def main_thread_s(page):
    """Processor time of the page's main thread; Performance.enable comes first."""
    metrics = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {entry["name"]: entry["value"] for entry in metrics}["TaskDuration"]
