"""Blocks of the documentation that are marked `run` are run, page by page, on a server of their own, with the files
that a page shows (`yaml run NAME`); what the pages name is there."""

import functools
import os
import re
import shlex
import shutil
import subprocess

import pytest

from support import BINARY, MODEL, ROOT, Server, run_command

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^ *```sh run\n(.*?)^ *```$", re.M | re.S)
FILE = re.compile(r"^```yaml run (\S+)\n(.*?)^```$", re.M | re.S)


def blocks(page):
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_blocks_of_a_page_run(page, start, tmp_path):
    if not shutil.which("curl"):
        pytest.skip("there is no curl here")
    server = start(Server)
    script = "\n".join(["set -euxo pipefail", *blocks(page)])
    script = script.replace("http://127.0.0.1:8000", server.url).replace(f"/models/{MODEL.name}", str(MODEL))
    for name, text in FILE.findall(page.read_text()):
        (tmp_path / name).write_text(text)
        assert name in script, f"{name} is shown and no block uses it"
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


def headings(page):
    """What a link may name behind its #."""
    found = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_links_to_a_part_of_a_page_lead_there():
    for page in PAGES:
        for target, part in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text()):
            there = page.parent / target if target else page
            assert part in headings(there), f"{page.name}: {target}#{part}"


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/index.md").read_text()
    for page in PAGES:
        assert page.name in ("README.md", "index.md") or f"({page.name})" in index, page.name


def test_commands_that_the_pages_name_are_there():
    commands = set(re.findall(r"^  ([a-z]+) ", run_command("--help").stdout, re.M))
    for page in PAGES:
        named = set(re.findall(r"(?:^|`)\s*flotilla ([a-z]+)\b", page.read_text(), re.M)) - {"program"}
        assert named <= commands, f"{page.name}: {named - commands}"


def commands_of(page):
    """Words of each command of ours that a block or a line of text shows."""
    text = page.read_text()
    shown = re.findall(r"^ *```sh[^\n]*\n(.*?)^ *```$", text, re.M | re.S)
    lines = [line for block in shown for line in block.replace("\\\n", " ").splitlines()]
    lines += [code.replace("\n", " ") for code in re.findall(r"`([^`]*\bflotilla [^`]*)`", re.sub(
        r"^ *```.*?^ *```$", "", text, flags=re.M | re.S))]
    for line in lines:
        for part in re.split(r"&&|\||;|\$\(", line.partition(" #")[0]):
            found = re.search(r"(?:^|[\s/])flotilla ((?:[a-z]|--).*)", part)
            if found and not re.match(r"[a-z]+:", found[1]):
                yield shlex.split(found[1].replace("'", "").replace('"', ""))


@functools.cache
def help_of(*path):
    done = run_command(*path, "--help")
    assert done.returncode == 0, (path, done.stderr)
    return done.stdout


def test_flags_that_the_pages_name_are_there():
    seen = 0
    for page in PAGES:
        if page.name == "architecture.md":  # names what programs of ours say to each other, too
            continue
        for words in commands_of(page):
            path = []
            for word in words:
                below = re.search(r"^Subcommands:\n((?:  .*\n|\n)*)", help_of(*path), re.M)
                if not below or not re.search(rf"^  {re.escape(word)}\s", below[1], re.M):
                    break
                path.append(word)
            for word in words:
                flag = word.partition("=")[0]
                if re.fullmatch(r"--[a-z][a-z-]*", flag):
                    seen += 1
                    there = re.search(rf"(?:^|[\s,]){flag}\b", help_of(*path))
                    assert there, f"{page.name}: flotilla {' '.join(words)}"
    assert seen > 40, seen


def test_the_table_of_knobs_is_whole(shared):
    page = (ROOT / "docs/configuration.md").read_text()
    rows = {name: (standard, applies) for name, standard, applies in
            re.findall(r"^\| `([A-Z_]+)` \| (\S+) \| ([a-z ]+) \|", page, re.M)}
    told = {one["name"]: one for one in shared.get_json("/admin/settings")["settings"]}
    assert set(rows) == set(told)
    for name, one in told.items():
        assert rows[name] == (f"{one['default']:g}" if abs(one["default"]) < 1e5 else str(int(one["default"])),
                              one["applies"]), name
