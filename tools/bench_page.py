#!/usr/bin/env python3
"""bench_page.py [--seconds N]: what it costs to look at the dashboard, and to leave it open.

Four synthetic replicas whose batches are full, so that the server sends as many events as it ever does, and a real
Chromium with the page. Printed for each page that moves: the events that came, what part of a core the page's main
thread took and what its whole renderer process did; before that when the page was first painted. Exit code 1 if the
page took more than 10 % of a core or was painted later than after 1 s.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/browser"), str(ROOT / "tests")]

import conftest as browser  # noqa: E402  of tests/browser
import support  # noqa: E402
from busy import busy_streams, main_thread_s  # noqa: E402
from page import Page  # noqa: E402

REPLICAS, WIDTH = 4, 8
CORE_MAX, PAINT_MAX_MS = 0.10, 1000
TICK = os.sysconf("SC_CLK_TCK")


def count_events(server, over, counted):
    """What another one who follows is sent, by the events' names."""
    connection = server.connection(60)
    connection.request("GET", "/admin/stream")
    answer = connection.getresponse()
    text = b""
    while not over.is_set():
        *events, text = (text + answer.read1(1 << 20)).split(b"\n\n")
        for event in events:
            name = event.split(b"\n")[0].removeprefix(b"event: ").decode() if event.startswith(b"event") else "state"
            counted[name] = counted.get(name, 0) + 1
            counted["bytes"] = counted.get("bytes", 0) + len(event)
    connection.close()


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def renderers(driver):
    """The processes that render pages, of this browser alone."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            above = pid = int(folder.name)
            if b"--type=renderer" not in (folder / "cmdline").read_bytes():
                continue
            while above not in (0, 1, driver.service.process.pid):
                above = parent_of(above)
        except OSError:
            continue
        if above == driver.service.process.pid:
            found.append(pid)
    return found


def measure(page, server, name, seconds):
    page.open("about:blank")
    page.open(f"{server.url}/#/{name}")
    page.wait("the page", lambda: page.find(f"main[data-page={name}]").text)
    paint_ms = page.driver.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    time.sleep(3)  # what happens once is no part of leaving it open
    over, counted = threading.Event(), {}
    watcher = threading.Thread(target=count_events, args=(server, over, counted), daemon=True)
    processes = {pid: cpu_s(pid) for pid in renderers(page.driver)}
    before, began = main_thread_s(page), time.monotonic()
    watcher.start()
    time.sleep(seconds)
    spent, passed = main_thread_s(page) - before, time.monotonic() - began
    whole = sum(cpu_s(pid) - processes[pid] for pid in renderers(page.driver) if pid in processes)
    over.set()
    watcher.join(10)
    events = ", ".join(f"{count / passed:.1f} {what}" for what, count in counted.items() if what != "bytes")
    print(f"{name:9} painted after {paint_ms:4.0f} ms · events a second: {events}; "
          f"{counted['bytes'] / passed / 1000:.0f} kB/s · main thread {spent / passed:.1%}, "
          f"renderer {whole / passed:.1%} of a core", flush=True)
    return spent / passed <= CORE_MAX and paint_ms <= PAINT_MAX_MS


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=20, help="how long each page is watched")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        server = support.Server(pathlib.Path(folder), environment={"FLOTILLA_SYNTHETIC_STEP_US": "50000"})
        try:
            server.load(nodes=REPLICAS, model="synthetic", batch_size=WIDTH)
            with busy_streams(server, REPLICAS * (WIDTH + 2)), browser.chromium_of_tests() as driver:
                page = Page(driver, None)
                page.size(1360, 860)
                good = [measure(page, server, name, seconds) for name in ("clusters", "live", "nodes", "logs")]
        finally:
            server.stop()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
