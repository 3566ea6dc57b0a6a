"""one_at_a_time.py PORT [HOST [SECONDS]]: an OpenAI-compatible server that has one position for all that it computes:
two requests at once fail at prefill, as mlx_lm.server's do with a module that was written for one stream. With SECONDS
an answer has ten words, and they pass before each."""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from other_engine import Answers, Engine  # noqa: E402

busy = threading.Lock()
pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0


class OneAtATime(Answers):
    def models(self):
        return [{"id": "its-model"}]

    def answer(self, body):
        if not busy.acquire(blocking=False):
            return self.whole({"error": "arange(): incompatible function arguments"}, 404)
        try:
            threading.Event().wait(0.3 if not pause else 0)
        finally:
            busy.release()
        self.stream(self.words(10 if pause and body["max_tokens"] > 1 else 1), model=body["model"])

    def words(self, count):
        for _ in range(count):
            threading.Event().wait(pause)
            yield "aye"
        threading.Event().wait(pause)


Engine(OneAtATime, int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1").serve_forever()
