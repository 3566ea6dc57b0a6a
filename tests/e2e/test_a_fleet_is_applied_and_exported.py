"""flotilla apply and export against real servers."""

import os
import re

import pytest

from support import ROOT, Server, ask, run_command

FLEET = """
clusters:
  - id: lab
    label: The lab
    nodes:
      - {id: lab-1, threads: 1}
      - id: lab-2
  - id: far
    nodes:
      - {id: mac, transport: http, url: "http://127.0.0.1:9/v1", api_key_env: FAR_KEY}
pools:
  - {cluster: lab, model: synthetic, batch: true, batch_size: 4, aliases: [other], default: true}
keys:
  - {name: ann, weight: 2, models: [synthetic]}
settings:
  QUEUE_MAX: 100
"""
SECRET = "sk-a-secret-of-the-far-node"


@pytest.fixture
def apply(tmp_path):
    def run(server, text, *flags, code=0, key=SECRET, **variables):
        (tmp_path / "fleet.yaml").write_text(text)
        variables = {"FLOTILLA_SERVER": server.url, "FAR_KEY": key} | variables
        done = run_command("apply", "-f", tmp_path / "fleet.yaml", *flags, env=os.environ | variables)
        assert done.returncode == code, done.stdout + done.stderr
        assert SECRET not in done.stdout + done.stderr
        return done.stderr if code else done.stdout
    return run


def test_a_fleet_comes_changes_and_goes(start, apply):
    server = start(Server)
    planned = apply(server, FLEET, "--dry-run")
    assert planned.splitlines() == [
        "add setting QUEUE_MAX (4096 -> 100)", "add cluster lab (nodes: 2)", "add cluster far (nodes: 1)",
        "add pool synthetic (synthetic on lab)", "add key ann",
        "dry run: 5 to add, 0 to change, 0 to remove; nothing was done"]
    assert server.get_json("/admin/clusters")["clusters"] == []

    applied = apply(server, FLEET)
    assert "2 of 2 replicas ready" in applied and "done: 5 to add" in applied
    secret = re.search(r"shown this once: (fl-\w+)", applied)[1]
    answer = ask(server.sdk(api_key=secret), model="other", max_tokens=4)
    assert answer.usage.completion_tokens == 4
    generation = server.pool("synthetic", "lab")["generation"]
    assert apply(server, FLEET) == "nothing to change\n"
    assert apply(server, FLEET, "--prune") == "nothing to change\n"
    assert server.pool("synthetic", "lab")["generation"] == generation

    # Another key of the far node is seen, and not shown.
    assert "change cluster far (nodes.mac: another api_key)" in apply(server, FLEET, "--dry-run", key="sk-other")
    changed = FLEET.replace("batch: true, batch_size: 4", "batch: false, batch_size: 4").replace("weight: 2", "weight: 3")
    assert "change pool synthetic (batch: true -> false; reloads, no request fails)" in apply(server, changed)
    assert server.pool("synthetic", "lab")["batch"] is False
    again = changed.replace("default: true", "threads: 1").replace("QUEUE_MAX: 100", "QUEUE_MAX: 200")
    assert "unloads and loads" in apply(server, again)
    assert apply(server, again) == "nothing to change\n"

    # What is not in the file stays until it is said otherwise, and then only of sections that it has.
    less = "clusters: [{id: lab, nodes: [{id: lab-2}]}]\npools: []\nkeys: []\n"
    left = apply(server, less)
    assert "leave pool synthetic" in left and "leave key ann" in left and "leave cluster far" in left
    assert len(server.replicas("synthetic", "lab")) == 1  # lab-1 went, which the file's own cluster says
    pruned = apply(server, less, "--prune").splitlines()
    assert pruned[:3] == ["remove pool synthetic", "remove cluster far", "remove key ann"]
    assert [one["id"] for one in server.get_json("/admin/clusters")["clusters"]] == ["lab"]
    assert server.get_json("/admin/keys")["keys"] == []
    assert "setting" not in apply(server, less, "--prune")


def test_an_export_makes_another_server_the_same(start, apply, tmp_path):
    first = start(Server)
    apply(first, FLEET)
    exported = first.command("export")
    assert exported.returncode == 0 and SECRET not in exported.stdout
    assert "Secrets are not in here" in exported.stdout and "# Node mac has such a key." in exported.stdout
    assert "fl-" not in exported.stdout

    second = start(Server)
    apply(second, exported.stdout)
    here = second.command("export").stdout
    assert here == exported.stdout.replace("# Node mac has such a key.\n", "")
    assert apply(second, here, "--prune") == "nothing to change\n"
    # A restart changes nothing of it.
    second.stop()
    third = start(Server, folder=second.state.parent)
    assert third.command("export").stdout == here


def test_mistakes_change_nothing_and_are_named(start, apply):
    server = start(Server)
    for text, said in (
            ("clusters: [{id: a, nodes: [{id: n, prot: 1}]}]", ':1:36: nodes[0].prot is not a field here; did you mean "port"?'),
            ("pools: [{cluster: nowhere, model: m}]", 'on cluster "nowhere", which is not declared'),
            ("settings: {QUEUE_MAXX: 1}", 'did you mean "QUEUE_MAX"?'),
            ("settings: {REPLICA_BACKOFF_MIN_S: 9}", "pinned to 0.2 by the server's environment"),
            ("clusters: [{id: a, nodes: [{id: n, transport: http, url: \"http://x\", api_key: sk-plain}]}]",
             "a key does not belong in this file"),
            ("clusters: [{id: a, nodes: [{id: n, transport: http, url: \"http://x\", api_key_env: NOT_SET}]}]",
             "the variable NOT_SET is not set"),
            ("clusters: [{id: a, nodes: [{id: n}]}]\npools: [{cluster: a, model: /no/such.gguf}]", None)):
        error = apply(server, text, code=1)
        if said:
            assert said in error and server.get_json("/admin/clusters")["clusters"] == []
        else:  # the steps before are done, and it says so
            assert "pool such: " in error and "1 of 2 steps are done" in error
    assert "sk-plain" not in error


def test_the_fleet_of_the_docs_is_a_good_plan(shared, apply):
    example = re.search(r"```yaml[^\n]*\n(clusters:.*?)```", (ROOT / "docs/configuration.md").read_text(), re.S)[1]
    planned = apply(shared, example, "--dry-run", MAC_KEY="x")
    for line in ("add cluster lab", "add cluster far", "add pool some-model", "add key ann", "add setting QUEUE_MAX"):
        assert line in planned
