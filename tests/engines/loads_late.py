"""loads_late.py PORT: an OpenAI-compatible server that is healthy from its first moment on and loads then, as
mlx_lm.server does: until its memory has grown for some seconds it fails what it is asked."""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from other_engine import Answers, Engine  # noqa: E402

STEPS, STEP_BYTES, STEP_S = 12, 8 << 20, 0.5
loaded = threading.Event()
weights = []


def load():
    for _ in range(STEPS):
        weights.append(bytearray(b"x" * STEP_BYTES))
        threading.Event().wait(STEP_S)
    loaded.set()


class LoadsLate(Answers):
    def answer(self, body):
        if loaded.is_set():
            self.stream(["aye"])
        else:
            self.whole({"error": "still loading"}, 503)


threading.Thread(target=load, daemon=True).start()
Engine(LoadsLate, int(sys.argv[1])).serve_forever()
