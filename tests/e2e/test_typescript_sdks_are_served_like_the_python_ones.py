import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from support import ALIAS, Server, wait_until


def test_sdks(place, sdks):
    done = subprocess.run(["node", "--test", "--test-reporter=tap", "sdks.test.mjs"], cwd=sdks, text=True, timeout=150,
                          capture_output=True, check=False,
                          env=os.environ | {"FLOTILLA_URL": place.url, "FLOTILLA_MODEL": ALIAS})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 12" in done.stdout and "# fail 0" in done.stdout, done.stdout


def test_they_try_again_when_there_was_no_room(start, sdks, tmp_path):
    server = start(Server, environment={"QUEUE_MAX": "1"})
    server.load(nodes=1, batch=False)
    story = {"model": ALIAS, "max_tokens": 1500, "stream": True, "messages": [{"role": "user", "content": "Tell a long story."}],
             "extra_body": {"ignore_eos": True}}
    with server.sdk().chat.completions.create(**story), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: server.sdk().chat.completions.create(**story).close())
        wait_until("one runs, one waits", lambda: server.pool()["queue_depth"] == 1)
        log = tmp_path / "retries.log"
        with log.open("w") as out:
            node = subprocess.Popen(["node", "retries.test.mjs"], cwd=sdks, stdout=out, stderr=out,
                                    env=os.environ | {"FLOTILLA_URL": server.url, "FLOTILLA_MODEL": ALIAS})
        wait_until("both were refused", lambda: all(f"{name} got 429" in log.read_text() for name in ("openai", "anthropic")))
    waiting.result(60)
    assert node.wait(60) == 0, log.read_text()
