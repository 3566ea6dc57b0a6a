"""What the page costs: the first look, and to leave it open. The figures are printed: a loaded machine is no
failure of the page."""

import threading
import time

from stand_in import busy_fleet

WATCHED_S = 3


def metrics(page):
    found = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {entry["name"]: entry["value"] for entry in found}


def test_first_paint(page, stand_in, capsys):
    stand_in.show(*busy_fleet())
    page.open(stand_in.url)
    page.wait("the page", lambda: page.find_all(".summary"))
    painted = page.driver.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    )
    assert painted > 0
    with capsys.disabled():
        print(f"\nfirst paint after {painted:.0f} ms (wanted: 1000)")


def test_page_left_open_follows_the_full_rate_of_events(page, stand_in, capsys):
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
    last = busy_fleet(0)[0]
    last["pools"][0]["queue_depth"] = 4711
    stand_in.show(last)
    page.wait_text('[data-part="queue-depth"]', "4711", timeout=5)  # it has not fallen behind
    spent = after["TaskDuration"] - before["TaskDuration"]
    seconds = after["Timestamp"] - before["Timestamp"]
    with capsys.disabled():
        print(f"\nthe page took {spent / seconds:.1%} of a core (wanted: 10 %)")
