"""What the page costs: the first look, and to leave it open."""

import threading
import time

from stand_in import busy_fleet

FIRST_PAINT_MAX_MS = 1000
CORE_SHARE_MAX = 0.10
WATCHED_S = 6


def metrics(page):
    found = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {entry["name"]: entry["value"] for entry in found}


def test_first_paint_comes_within_a_second(page, stand_in):
    stand_in.show(*busy_fleet())
    page.open(stand_in.url)
    page.wait("the page", lambda: page.find_all(".summary"))
    painted = page.driver.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    )
    assert painted < FIRST_PAINT_MAX_MS


def test_page_left_open_takes_little_of_a_core_at_the_full_rate_of_events(page, stand_in):
    stand_in.show(*busy_fleet())
    page.open(stand_in.url)
    page.wait("the page", lambda: page.find_all(".summary"))
    over = threading.Event()

    def play():
        begin = time.monotonic()
        while not over.wait(0.1):  # the server sends at most ten events a second
            stand_in.show(*busy_fleet(time.monotonic() - begin))

    player = threading.Thread(target=play, daemon=True)
    player.start()
    try:
        page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        before = metrics(page)
        over.wait(WATCHED_S)
        after = metrics(page)
    finally:
        over.set()
        player.join()
    spent = after["TaskDuration"] - before["TaskDuration"]
    seconds = after["Timestamp"] - before["Timestamp"]
    assert spent / seconds < CORE_SHARE_MAX, f"{spent / seconds:.0%} of a core"
