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
    "cached_share": lambda t: 0.5 + 0.4 * math.sin(t / 200),
}
END = 1_764_440_000


def sample(pool, unix_s, node=None, **changes):
    return {
        "pool": pool,
        "node": node,
        "unix_s": unix_s,
        **{n: round(f(unix_s), 2) for n, f in FIGURES.items()},
    } | changes


def history(*pools, nodes=(None,), range_s=900, step_s=5, end=END):
    times = list(range(end - range_s + step_s, end + 1, step_s))
    series = [
        {"pool": pool, "node": node, "unix_s": times}
        | {name: [round(f(t + 40 * i), 2) for t in times] for name, f in FIGURES.items()}
        for i, (pool, node) in enumerate((pool, node) for pool in pools for node in nodes)
    ]
    return (200, {"range_s": range_s, "step_s": step_s, "pools": series}, 0)


def request(id, **changes):
    return {
        "id": id,
        "model": "smollm2-135m-instruct",
        "key": "127.0.0.1",
        "peer": "127.0.0.1",
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
        "prefill_chunks": 1,
        "gaps": 119,
        "gap_max_ms": 61.5,
        "retries": 0,
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
            {
                "id": "key-00000001",
                "name": "everything-open",
                "models": [],
                "weight": 1,
                "requests_per_min": 0,
                "tokens_per_min": 0,
                "max_in_flight": 0,
                "cache_group": "",
                "expires_unix_s": 0,
                "created_unix_s": END,
                "in_flight": 0,
            },
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
GPU = {
    "index": 0,
    "name": "NVIDIA RTX A4000",
    "memory_total_bytes": 17_171_480_576,
    "memory_used_bytes": 6_800_000_000,
    "busy_percent": 61,
    "temperature_c": 58,
    "power_w": None,
}


def telemetry(node, **changes):
    return {
        "node": node,
        "label": node,
        "transport": "local",
        "host": "127.0.0.1",
        "state": "up",
        "reason": "",
        "version": "0.1.0",
        "platform": "linux-x86_64",
        "outdated": False,
        "round_trip_ms": 0.4,
        "memory_total_bytes": 34_000_000_000,
        "memory_available_bytes": 21_000_000_000,
        "cpu_load": 5.2,
        "cores": 8,
        "replicas": [{"alias": "m", "node": node, "rss_bytes": 312_000_000}],
        "gpus": [],
    } | changes


def nodes(*entries):
    return (200, {"nodes": list(entries)}, 0)


def found_model(model, nodes, missing=(), differing=(), **changes):
    return {
        "model": model,
        "size_bytes": 4_680_000_000,
        "parts": 1,
        "folder": False,
        "family": "llama",
        "quantization": "Q4_0",
        "context_trained": 8192,
        "nodes": list(nodes),
        "missing": list(missing),
        "differing": list(differing),
    } | changes


def looked_at(node, error=""):
    return {"node": node, "models_dir": "/models", "truncated": False, "error": error}


MINIS = ("mini-a", "mini-c", "mini-d")
MODELS = (
    200,
    {
        "clusters": [
            {
                "cluster": "minis",
                "models": [
                    found_model("Meta-Llama-3.1-8B.Q4_0.gguf", MINIS),
                    found_model(
                        "Qwen2.5-1.5B.Q8_0.gguf",
                        ("mini-a", "mini-d"),
                        missing=["mini-c"],
                        differing=["mini-d"],
                    ),
                    found_model("broken.gguf", ("mini-a",), error="not a GGUF file"),
                    found_model(
                        "odyssai/Qwen3.8-Flash-Next-Q6",
                        ("mini-a",),
                        missing=["mini-c", "mini-d"],
                        folder=True,
                        parts=9,
                        family="qwen3_next",
                        quantization="6bit",
                    ),
                ],
                "nodes": [
                    *(looked_at(node) for node in MINIS),
                    looked_at("mini-b", "it is not linked to"),
                ],
            }
        ]
    },
    0,
)


def preflight_node(node, **changes):
    return {
        "node": node,
        "model_present": True,
        "model_bytes": 4_680_000_000,
        "family": "llama",
        "quantization": "Q4_0",
        "context": 8192,
        "context_trained": 8192,
        "weights_bytes": 4_600_000_000,
        "kv_bytes": 1_000_000_000,
        "buffer_bytes": 200_000_000,
        "need_bytes": 5_800_000_000,
        "free_bytes": 9_000_000_000,
        "on_devices": False,
        "advice": "",
        "estimated": False,
        "replicas_here": 1,
        "reachable": True,
        "version": "0.1.0",
        "outdated": False,
        "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "differs": "",
        "disk_free_bytes": 90_000_000_000,
        "fits": True,
        "verdict": "fits",
        "fix": "",
    } | changes


COMPARED = (
    200,
    {
        "cluster": "minis",
        "model": "Qwen2.5-1.5B.Q8_0.gguf",
        "batch": False,
        "width": 1,
        "fits": False,
        "limiting_node": "mini-d",
        "nodes": [
            preflight_node("mini-a"),
            preflight_node(
                "mini-d",
                hash="60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
                fits=False,
                differs="its file is of the same size but another",
                fix="copy it there as it is on node mini-a",
            ),
        ],
    },
    0,
)


def transfer(ends="running", **node):
    return {
        "id": "t1",
        "cluster": "minis",
        "model": "Qwen2.5-1.5B.Q8_0.gguf",
        "source": "mini-a",
        "state": ends,
        "total_bytes": 1_890_000_000,
        "began_unix_ms": END * 1000,
        "took_s": 0,
        "nodes": [
            {
                "node": "mini-c",
                "state": "copying",
                "file": "Qwen2.5-1.5B.Q8_0.gguf",
                "done_bytes": 720_000_000,
                "total_bytes": 1_890_000_000,
                "resumed_bytes": 120_000_000,
                "bytes_per_s": 61_000_000,
                "eta_s": 19.2,
                "error": "",
            }
            | node
        ],
    }


def finding(node, check, level, detail, fix=""):
    return {
        "cluster": "minis",
        "node": node,
        "check": check,
        "level": level,
        "detail": detail,
        "fix": fix,
    }


DOCTOR = (
    200,
    {
        "ok": False,
        "findings": [
            finding("mini-a", "link", "ok", "up, 0.4 ms"),
            finding("mini-b", "link", "failure", "mini-b does not answer", "look at the machine"),
            finding("mini-c", "disk", "warning", "812 MiB are free", "make room"),
        ],
    },
    0,
)
TRUST = (
    200,
    {
        "node": "mini-a",
        "host": "mini-a.lan",
        "fingerprints": ["SHA256:47DEQpj8HBSaTImWhhE8OtCY0J3g1kZm9q3sVdQ7Rk0 (ED25519)"],
        "file": "/home/user/.ssh/known_hosts",
        "known": False,
        "changed": True,
    },
    0,
)
BOOTSTRAP = (
    200,
    {
        "node": "mini-a",
        "platform": "macos-arm64",
        "path": "/opt/homebrew/bin/flotilla",
        "version": "0.1.0",
        "restarted": True,
        "up": True,
    },
    0,
)
LOG = (
    "\n".join(f"12:00:{i % 60:02} info step {i}: 8 sequences decoded" for i in range(10_500)) + "\n"
)


def everything(stand_in):
    """All routes answer, as on a server of this page's own age."""
    alias = "smollm2-135m-instruct"
    stand_in.history = [sample(alias, END), sample(alias, END, node="local-1")]
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
        ("GET", "/admin/models"): MODELS,
        ("GET", "/admin/clusters/minis/preflight"): COMPARED,
        ("GET", "/admin/doctor"): DOCTOR,
        ("POST", "/admin/nodes/mini-a/trust"): TRUST,
        ("POST", "/admin/nodes/mini-a/bootstrap"): BOOTSTRAP,
    }
    here = [telemetry(node) for node in ("local-1", "local-2", "mini-c", "mini-d")]
    stand_in.answers[("GET", "/admin/nodes")] = nodes(*here, telemetry("mini-a", gpus=[GPU]))
