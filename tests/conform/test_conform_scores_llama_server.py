"""`flotilla conform` against llama-server of our engine's source, beside ours: the same model, the same cases."""

import json

import pytest

import support
import vendored


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    server = vendored.LlamaServer(vendored.build("llama-server"), tmp_path_factory.mktemp("theirs"), 4, "--jinja")
    yield server
    server.stop()


def conform(url):
    done = support.run_command("conform", url, "--json", timeout=800)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.timeout(1200)
def test_ours_holds_all_and_theirs_is_told_what_it_does_not(shared, theirs, capsys):
    code, report = conform(theirs.url)
    ours_code, ours = conform(shared.url)
    broken = {case["id"]: case["reason"] for case in report["cases"] if not case["held"]}
    with capsys.disabled():
        print(f"\nllama-server holds {report['held']} of {report['of']}, ours {ours['held']} of {ours['of']}")
        for score in report["scores"]:
            print(f"  {score['api']:<18} {score['held']:>3} of {score['of']:>3}")
        for name, reason in broken.items():
            print(f"  {name}: {reason}")
    assert ours_code == 0 and ours["held"] == ours["of"] == report["of"]
    assert code == 1 and 0 < report["held"] < report["of"] and all(broken.values())
