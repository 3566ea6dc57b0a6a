import json

import pytest

from support import MODEL, Runner, run_command


@pytest.fixture
def synthetic(start):
    """Slow enough that a long prompt takes many passes, quick enough for a test."""
    return start(Runner, "--synthetic", "--context", "8192", "--width", "8",
                 environment={"FLOTILLA_SYNTHETIC_STEP_US": "2000", "FLOTILLA_SYNTHETIC_TOKEN_US": "100",
                              "SESSION_STORE_BYTES": "0"})  # else it grows until the store is full


def test_stall_names_gaps_and_first_tokens(synthetic):
    done = run_command("bench", "stall", synthetic.url, "--prompt-tokens", 6000, "--json")
    report = json.loads(done.stdout)
    assert report["error"] is None, done.stderr
    assert 5500 < report["prompt_tokens"] < 6500
    assert report["gaps_before"] > 100 and report["gaps_during"] > 10
    assert len(report["small_ttft_ms"]) == 2
    assert 0 < report["alone_ms"] < report["beside_ms"]
    assert done.returncode == (1 if report["over"] else 0)


def test_soak_counts_every_generation_and_watches_memory(synthetic):
    done = run_command("bench", "soak", synthetic.url, "--pid", synthetic.pid, "--generations", 600,
                       "--slowdown-max", 100, "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, report
    assert (report["generations"], report["failed"]) == (600, 0)
    assert report["resident_first"] > 1 << 20
    assert report["at_500_ms"] > 0


def test_a_runner_uses_the_memory_that_its_models_header_foretells():
    done = run_command("preflight", MODEL, "--width", 2, "--context", 1024, "--verify", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0, (report, done.stderr)
    assert report["need_bytes"] == pytest.approx(report["used_bytes"], rel=0.05)


def test_status_tells_a_replicas_memory_and_overhead(shared, client):
    client.chat.completions.create(model="smollm2-135m-instruct", max_tokens=20,
                                   messages=[{"role": "user", "content": "hello"}])
    replica = next(replica for replica in shared.replicas() if replica["live"])
    assert replica["resident_bytes"] > 90 << 20
    assert 0 <= replica["step_overhead"] < 1
