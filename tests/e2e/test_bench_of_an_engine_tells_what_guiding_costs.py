import json

from support import MODEL, run_command

SMALL = ["bench", "engine", MODEL, "--width", 1, "--context", 256, "--prompt-tokens", 16, "--rounds", 1]


def test_a_choice_and_a_guided_one_are_told_apart():
    answer = run_command(*SMALL, "--json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert 0 < report["choice_us"] < report["guided_choice_us"], report
    assert report["width"] == 1 and report["prompt_tokens"] == 16 and report["step_ms"] > 0
