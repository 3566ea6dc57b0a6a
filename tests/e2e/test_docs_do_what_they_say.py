"""Blocks of the documentation that are marked `run` are run, page by page, on a server of their own; what the pages name
is there."""

import os
import re
import shutil
import subprocess

import pytest

from support import BINARY, MODEL, ROOT, Server, run_command

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```sh run\n(.*?)^```$", re.M | re.S)


def blocks(page):
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_blocks_of_a_page_run(page, start, tmp_path):
    if not shutil.which("curl"):
        pytest.skip("there is no curl here")
    server = start(Server)
    script = "\n".join(["set -euxo pipefail", *blocks(page)])
    script = script.replace("http://127.0.0.1:8000", server.url).replace(f"/models/{MODEL.name}", str(MODEL))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "flotilla").symlink_to(BINARY)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "FLOTILLA_SERVER": server.url}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True,
                          timeout=150, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/index.md").read_text()
    for page in PAGES:
        assert page.name in ("README.md", "index.md") or f"({page.name})" in index, page.name


def test_commands_that_the_pages_name_are_there():
    commands = set(re.findall(r"^  ([a-z]+) ", run_command("--help").stdout, re.M))
    for page in PAGES:
        named = set(re.findall(r"(?:^|`)\s*flotilla ([a-z]+)\b", page.read_text(), re.M)) - {"program"}
        assert named <= commands, f"{page.name}: {named - commands}"


def test_flags_that_the_pages_give_a_command_are_in_its_help():
    helps = {}
    for page in PAGES:
        for line in re.findall(r"^flotilla ([^#\n]*)", page.read_text(), re.M):
            path = tuple(word for word in line.split()[:2] if re.fullmatch("[a-z]+", word))
            if path not in helps:
                helps[path] = run_command(*path, "--help").stdout
            for flag in re.findall(r"(?<!\S)--[a-z][\w-]*", line):
                assert f"{flag} " in helps[path].replace(",", " ") or f"{flag}\n" in helps[path], (page.name, line)
    assert len(helps) > 15


def test_the_table_of_knobs_is_whole(shared):
    page = (ROOT / "docs/configuration.md").read_text()
    rows = {name: (standard, applies) for name, standard, applies in
            re.findall(r"^\| `([A-Z_]+)` \| (\S+) \| ([a-z ]+) \|", page, re.M)}
    told = {one["name"]: one for one in shared.get_json("/admin/settings")["settings"]}
    assert set(rows) == set(told)
    for name, one in told.items():
        assert rows[name] == (f"{one['default']:g}" if abs(one["default"]) < 1e5 else str(int(one["default"])),
                              one["applies"]), name
