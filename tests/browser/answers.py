"""What the server answers on the pages beside the clusters, for the stand-in."""

import math

FIGURES = {
    "tokens_per_s": lambda t: 90 + 60 * math.sin(t / 180),
    "queue": lambda t: max(0, 4 * math.sin(t / 90)),
    "in_flight": lambda t: 6 + 5 * math.sin(t / 180),
    "replicas_live": lambda t: 2,
    "ttft_p50_ms": lambda t: 80 + 30 * math.sin(t / 120),
    "ttft_p99_ms": lambda t: 300 + 200 * math.sin(t / 150),
    "gap_p50_ms": lambda t: 22 + 3 * math.sin(t / 60),
    "gap_p99_ms": lambda t: 60 + 25 * math.sin(t / 75),
}
END = 1_764_440_000


def sample(pool, unix_s, **changes):
    return {
        "pool": pool,
        "unix_s": unix_s,
        **{n: round(f(unix_s), 2) for n, f in FIGURES.items()},
    } | changes


def history(*pools, range_s=900, step_s=5, end=END):
    times = list(range(end - range_s + step_s, end + 1, step_s))
    series = [
        {"pool": pool, "unix_s": times}
        | {name: [round(f(t + 40 * i), 2) for t in times] for name, f in FIGURES.items()}
        for i, pool in enumerate(pools)
    ]
    return (200, {"range_s": range_s, "step_s": step_s, "pools": series}, 0)


def request(id, **changes):
    return {
        "id": id,
        "model": "smollm2-135m-instruct",
        "key": "127.0.0.1",
        "phase": "ended",
        "node": "local-1",
        "stream": True,
        "arrived_unix_ms": END * 1000,
        "queued_ms": 1.2,
        "ttft_ms": 48.2,
        "took_ms": 1834.5,
        "prompt_tokens": 31,
        "cached_tokens": 24,
        "completion_tokens": 120,
        "resumed": False,
        "status": 200,
        "end": "completed",
    } | changes


def requests(*entries):
    return (200, {"requests": list(entries)}, 0)


def bench(nodes=("local-1", "local-2"), width=4, streams=20, took_ms=9000):
    """Waves: each node runs `width` streams at once."""
    lanes = len(nodes) * width
    waves = math.ceil(streams / lanes)
    length = took_ms / waves
    entries = [
        {
            "number": i + 1,
            "node": nodes[i % len(nodes)],
            "first_ms": (i // lanes) * length + 40 + 7 * (i % lanes),
            "last_ms": (i // lanes + 1) * length - 10,
            "tokens": 100,
            "whole": True,
        }
        for i in range(streams)
    ]
    answer = {
        "model": "smollm2-135m-instruct",
        "requests": streams,
        "max_tokens": 100,
        "took_ms": took_ms,
        "whole": streams,
        "tokens": 100 * streams,
        "tokens_per_s": 100 * streams / took_ms * 1000,
        "ttft_p50_ms": 95,
        "ttft_p99_ms": 6100,
        "streams": entries,
    }
    return (200, answer, 0)


def setting(name, value, **changes):
    return {
        "name": name,
        "value": value,
        "default": value,
        "min": 1,
        "max": 64,
        "source": "default",
        "applies": "at once",
        "about": "What it does, in a sentence",
    } | changes


def settings(*entries):
    return (200, {"settings": list(entries)}, 0)


SETTINGS = settings(
    setting("RUNNER_BATCH_SIZE", 8, applies="next load", about="Sequences that decode together"),
    setting("QUEUE_MAX", 100, default=4096, max=1e6, source="stored", about="Requests that wait"),
    setting("DRAIN_S", 5, default=120, source="environment", about="How long streams may finish"),
)
EVENTS = (
    200,
    {
        "events": [
            {
                "at_unix_ms": END * 1000,
                "who": "127.0.0.1",
                "action": "POST /admin/clusters/local/load",
                "status": 200,
                "detail": '{"model": "/models/SmolLM2-135M-Instruct.Q4_1.gguf", "batch": true}',
            },
            {
                "at_unix_ms": END * 1000 - 60_000,
                "who": "127.0.0.1",
                "action": "PUT /admin/clusters/Not good",
                "status": 400,
                "detail": "an id is small letters, digits and dashes",
            },
        ]
    },
    0,
)
SESSIONS = (
    200,
    {
        "sessions": [
            {
                "id": "00c0ffee00c0ffee",
                "alias": "smollm2-135m-instruct",
                "node": "local-2",
                "tokens": 1831,
                "idle_s": 12.5,
                "named": True,
            }
        ]
    },
    0,
)
KEYS = (
    200,
    {
        "keys": [
            {
                "id": "key-00c0ffee",
                "name": "build-server",
                "models": ["smollm2-135m-instruct"],
                "weight": 2.5,
                "requests_per_min": 60,
                "tokens_per_min": 100_000,
                "max_in_flight": 4,
                "cache_group": "team",
                "expires_unix_s": END,
                "created_unix_s": END - 1000,
                "in_flight": 3,
            },
            {"id": "key-00000001", "name": "everything-open"},
        ]
    },
    0,
)
COUNTS = {
    "requests": 4711,
    "prompt_tokens": 1_234_567,
    "cached_tokens": 654_321,
    "generated_tokens": 98_765,
}
USAGE = (
    200,
    {
        "by": "key",
        "rows": [
            {"key": "key-00c0ffee", "name": "build-server"} | COUNTS,
            {"key": "", "name": ""} | COUNTS,
        ],
    },
    0,
)
TELEMETRY = (
    200,
    {
        "memory_total": 34_000_000_000,
        "memory_available": 21_000_000_000,
        "cpu_load": 5.2,
        "cores": 8,
        "temperature_c": 61,
        "link_ms": 0.4,
    },
    0,
)
LOG = (
    "\n".join(f"12:00:{i % 60:02} info step {i}: 8 sequences decoded" for i in range(10_500)) + "\n"
)


def everything(stand_in):
    """All routes answer, as on a server of this page's own age."""
    alias = "smollm2-135m-instruct"
    stand_in.history = [sample(alias, END)]
    live = request("req-live", phase="answering", status=None, end=None, completion_tokens=55)
    gone = request("req-gone", status=499, end="the client went away", ttft_ms=None, resumed=True)
    stand_in.answers |= {
        ("GET", "/admin/history"): history(alias, "llama-3.1-8b-instruct"),
        ("GET", "/admin/requests"): requests(request("req-done"), live, gone),
        ("POST", "/admin/bench"): bench(),
        ("GET", "/admin/settings"): SETTINGS,
        ("GET", "/admin/events"): EVENTS,
        ("GET", "/admin/logs"): (200, LOG, 0),
        ("GET", "/admin/sessions"): SESSIONS,
        ("GET", "/admin/keys"): KEYS,
        ("GET", "/admin/usage"): USAGE,
    }
    for node in ("local-1", "local-2", "mini-a", "mini-c", "mini-d"):
        stand_in.answers[("GET", f"/admin/nodes/{node}/telemetry")] = TELEMETRY
