"""flotilla.yaml: read, checked, shown, described."""

import json
import os
import re

import jsonschema
import pytest
import yaml

from support import QUICK, ROOT, Process, Server, run_command

PUBLISHED = ROOT / "docs/flotilla.schema.json"
EXAMPLE = re.search(r"```yaml[^\n]*\n(host:.*?)```", (ROOT / "docs/configuration.md").read_text(), re.S)[1]


@pytest.fixture(scope="module")
def schema():
    printed = run_command("config", "schema")
    assert printed.returncode == 0, printed.stderr
    if os.environ.get("UPDATE"):
        PUBLISHED.write_text(printed.stdout)
    assert printed.stdout == PUBLISHED.read_text(), "docs/flotilla.schema.json is not of this program; UPDATE=1"
    schema = json.loads(printed.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def file(tmp_path):
    def write(text, name="flotilla.yaml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name
    return write


def table(shown):
    """Setting -> value, source, where, as `config show` prints them."""
    rows = [re.split(r" {2,}", line) for line in shown.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) >= 3}


def test_the_example_of_the_docs_is_good(schema, file):
    schema.validate(yaml.safe_load(EXAMPLE))
    done = run_command("config", "check", file(EXAMPLE))
    assert done.returncode == 0 and "14 settings, all good" in done.stdout, done.stderr


@pytest.mark.parametrize("text, said", [
    ("prot: 80", '1:1: there is no setting "prot"; did you mean "port"?'),
    ("host: a\nport: 70000", "2:7: port is 70000; it takes a whole number from 0 to 65535"),
    ('port: "80"', '1:7: port is "80"'),
    ("allow_anonymous: 1", "1:18: allow_anonymous is 1; it takes true or false"),
    ("log_level: loud", "1:12: log_level is \"loud\"; it takes one of debug, info, warning, error"),
    ("knobs:\n  QUEUE_MAXX: 1", '2:3: there is no knobs entry "QUEUE_MAXX"; did you mean "QUEUE_MAX"?'),
    ("knobs: {RUNNER_BATCH_SIZE: 65}", "1:28: knobs.RUNNER_BATCH_SIZE is 65; it takes a number from 1 to 64"),
    ("state: ~/x", "1:8: state is"),
    ("- port", "1:1: the file is a list"),
])
def test_what_is_wrong_has_its_place_and_the_schema_refuses_it_too(schema, file, text, said):
    path = file(text)
    done = run_command("config", "check", path)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"{path}:{said}"), done.stderr
    assert not schema.is_valid(yaml.safe_load(text))


def test_all_mistakes_are_told_at_once_and_the_server_does_not_start(file, tmp_path):
    path = file("a: 1\nport: x\nport: 2\n")
    assert '"port" is there twice, first on line 2' in run_command("config", "check", path).stderr
    path = file("alow_anonymous: true\nport: x\n")
    done = run_command("serve", "--config", path, "--state", tmp_path / "state")
    assert done.returncode == 1
    assert "1:1: there is no setting" in done.stderr and "2:7: port is" in done.stderr
    assert not (tmp_path / "state").exists()
    assert "no-such.yaml" in run_command("serve", "--config", "no-such.yaml").stderr
    for flag in (["--knob", "QUEUE_MIX=1"], ["--port", "x"], ["--knob", "QUEUE_MAX=0"], ["--log-level", "loud"]):
        done = run_command("serve", *flag, timeout=20)
        assert done.returncode == 2 and flag[1].split("=")[0] in done.stderr, done.stderr


def test_show_tells_values_and_their_sources_and_no_secret(file, tmp_path):
    file("very-secret-token\n", "token")
    path = file(EXAMPLE)
    done = run_command("config", "show", "--config", path, "--port", "0", "--knob", "DRAIN_S=7",
                       env=os.environ | {"RUNNER_BATCH_SIZE": "4", "FLOTILLA_SSH": "/usr/bin/ssh"})
    assert done.returncode == 0, done.stderr
    shown = table(done.stdout)
    assert shown["port"] == ["0", "flag", "--port"]
    assert shown["knobs.DRAIN_S"][:2] == ["7", "flag"]
    assert shown["knobs.RUNNER_BATCH_SIZE"] == ["4", "environment", "RUNNER_BATCH_SIZE"]
    assert shown["ssh_program"] == ["/usr/bin/ssh", "environment", "FLOTILLA_SSH"]
    assert shown["knobs.QUEUE_MAX"] == ["1000", "file", "line 15"]
    assert shown["admin_token_file"] == [str(tmp_path / "token"), "file", "line 4"]
    assert shown["tls_key"][:2] == [str(tmp_path / "key.pem"), "file"]
    assert shown["trusted_proxies"][:2] == ["10.0.0.0/8", "file"]
    assert shown["knobs.AGENT_GRACE_S"] == ["60", "default"]
    assert "very-secret" not in done.stdout
    # Of the environment; and what lies in the current folder is not read by itself.
    for variable, found in ((str(path), str(path)), ("", "")):
        done = run_command("config", "show", cwd=tmp_path, env=os.environ | {"FLOTILLA_CONFIG": variable})
        assert (found in done.stdout) and (table(done.stdout)["port"][1] == "default") != bool(found), done.stdout


def test_a_server_starts_by_its_file_and_what_is_stored_goes_before_it(file, tmp_path, start):
    path = file(f"port: 0\nstate: {tmp_path / 'state'}\nknobs:\n  QUEUE_MAX: 33\n  QUEUE_MAX_AGE_S: 44\n")

    class Configured(Server):
        def __init__(self, folder, *arguments):
            Process.__init__(self, ["serve", "--config", path, *arguments], folder / "serve.log", QUICK,
                             listening=r"flotilla: listening on (http://127\.0\.0\.1:\d+)")

    server = start(Configured, "--knob", "DRAIN_S=5")

    def setting(name):
        return next((one["value"], one["source"]) for one in server.get_json("/admin/settings")["settings"]
                    if one["name"] == name)

    assert (tmp_path / "state/state.db").exists()
    assert setting("QUEUE_MAX") == (33, "file")
    assert setting("DRAIN_S") == (5, "flag")
    assert setting("QUEUE_MAX_BYTES")[1] == "default"
    status, answer = server.admin("PUT", "/settings", {"DRAIN_S": 6})
    assert status == 409 and "pinned to 5 by a flag" in answer["detail"]
    assert server.admin("PUT", "/settings", {"QUEUE_MAX": 22})[0] == 200
    assert setting("QUEUE_MAX") == (22, "stored")
    shown = table(run_command("config", "show", "--config", path, "--server", server.url).stdout)
    assert shown["knobs.QUEUE_MAX"] == ["22", "stored", server.url]
    assert shown["knobs.QUEUE_MAX_AGE_S"][:2] == ["44", "file"]
    assert server.admin("PUT", "/settings", {"QUEUE_MAX": None})[0] == 200
    assert setting("QUEUE_MAX") == (33, "file")


@pytest.mark.parametrize("file_mode, folder_mode, culprit", [
    (0o664, 0o755, "flotilla.yaml"), (0o646, 0o755, "flotilla.yaml"), (0o644, 0o777, ""), (0o644, 0o755, "ssh_config")])
def test_a_file_that_others_can_write_starts_no_server(tmp_path, start, file_mode, folder_mode, culprit):
    folder = tmp_path / "kept"
    folder.mkdir()
    ssh_config, path = folder / "ssh_config", folder / "flotilla.yaml"
    ssh_config.write_text("")
    path.write_text("ssh_config: ssh_config\n")
    path.chmod(file_mode)
    ssh_config.chmod(0o620 if culprit == "ssh_config" else 0o600)
    folder.chmod(folder_mode)
    done = run_command("serve", "--config", path, "--port", 0, "--state", tmp_path / "state", timeout=20)
    assert done.returncode == 1
    assert f"may write {(folder / culprit) if culprit else folder} (mode" in done.stderr, done.stderr
    assert "chmod go-w" in done.stderr and not (tmp_path / "state").exists()
    for safe, mode in ((folder, 0o1777), (path, 0o644), (ssh_config, 0o600)):
        safe.chmod(mode)
    start(Server, "--config", path)
