"""One source, three readers: what --help names is what man pages describe and shells complete."""

import re
import shutil
import subprocess

import pytest

from support import BINARY, run_command


def section(text, heading):
    found = re.search(rf"^{heading}:\n((?:  .*\n|\n)*)", text, re.M)
    return found[1] if found else ""


def commands_and_options():
    """Path of each command -> the options that its --help names, and the commands below it."""
    found, waiting = {}, [()]
    while waiting:
        path = waiting.pop()
        done = run_command(*path, "--help")
        assert done.returncode == 0, (path, done.stderr)
        below = re.findall(r"^  ([a-z]\S*)", section(done.stdout, "Subcommands"), re.M)
        options = re.findall(r"(?:^  |,)(--?[A-Za-z][\w-]*)", section(done.stdout, "Options"), re.M)
        found[path] = (set(options), set(below))
        waiting += [(*path, name) for name in below]
    return found


@pytest.fixture(scope="module")
def helps():
    found = commands_and_options()
    assert ("cluster", "add") in found and "--knob" in found["serve",][0] and len(found) > 30
    return found


def completed(script, *words):
    """What bash offers after these words."""
    asked = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _flotilla; '
             'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", asked, "bash", script, "flotilla", *words], capture_output=True, text=True,
                          check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_bash_completes_what_help_names(helps, tmp_path):
    script = tmp_path / "flotilla"
    script.write_text(run_command("completion", "bash").stdout)
    for path, (options, below) in helps.items():
        offered = completed(script, *path, "")
        assert {word for word in offered if word.startswith("-")} == options, path
        assert below <= offered, path
    assert completed(script, "cl") == {"cluster"}
    assert completed(script, "serve", "--log-format", "") == {"text", "json"}
    assert completed(script, "serve", "--log-format", "j") == {"json"}
    assert completed(script, "cluster", "add", "x", "--label", "") == set(), "bash's own file names follow"
    assert completed(script, "completion", "") >= {"bash", "zsh", "fish"}


def test_the_manual_describes_what_help_names(helps, tmp_path):
    assert run_command("manual", "--share", tmp_path).returncode == 0
    pages = {file.name: file.read_text() for file in (tmp_path / "man/man1").iterdir()}
    for path, (options, below) in helps.items():
        page = pages["-".join(["flotilla", *path[:1]]) + ".1"].replace("\\-", "-")
        if len(path) <= 1:
            page = page.split("\n.SH FLOTILLA ")[0]
        else:
            heading = " ".join(("flotilla", *path)).upper()
            page = re.search(rf"^\.SH {heading}\n(.*?)(?=^\.SH |\Z)", page, re.M | re.S)[1]
        named = set(re.findall(r"\\fB(--?[A-Za-z][\w-]*)\\fR", page))
        assert named == options, path
        assert all(name in pages["flotilla.1"] for name in below if not path)
    assert run_command("manual", "serve").stdout == pages["flotilla-serve.1"]
    assert "no command \"sevre\"" in run_command("manual", "sevre").stderr


def test_the_pages_are_good_roff(tmp_path):
    if not shutil.which("groff"):
        pytest.skip("there is no groff here")
    assert run_command("manual", "--share", tmp_path).returncode == 0
    pages = sorted((tmp_path / "man/man1").iterdir())
    done = subprocess.run(["groff", "-man", "-K", "utf8", "-ww", "-z", "-Tutf8", *pages], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr[:2000]
    shown = subprocess.run(["groff", "-man", "-K", "utf8", "-Tascii", "-P-c", tmp_path / "man/man1/flotilla-serve.1"],
                           capture_output=True, text=True, check=True).stdout
    shown = re.sub(r"-\n\s+", "", re.sub(".\x08", "", shown))  # no bold, no hyphenation
    assert "--admin-token-file" in shown and "FLOTILLA_ADMIN_TOKEN_FILE" in shown and "Default: 8000" in shown


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_their_scripts(shell, tmp_path):
    done = run_command("completion", shell)
    assert done.returncode == 0 and "--log-format" in done.stdout or "-l log-format" in done.stdout
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    script = tmp_path / "flotilla"
    script.write_text(done.stdout)
    checked = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and checked.stderr == "", checked.stderr


def test_the_installed_layout_is_whole(tmp_path):
    subprocess.run([BINARY, "manual", "--share", tmp_path], check=True)
    for file in ("bash-completion/completions/flotilla", "zsh/vendor-completions/_flotilla",
                 "fish/vendor_completions.d/flotilla.fish", "man/man1/flotilla.1", "man/man1/flotilla-cluster.1"):
        assert (tmp_path / file).stat().st_size > 100, file
    assert run_command("manual", "--share", "/proc/nothing").returncode == 1
