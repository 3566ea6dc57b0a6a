import json
import re
import shutil
import signal

import pytest

from machine import Service
from support import ALIAS, MODEL, wait_until

UNIT = "/usr/lib/systemd/system/flotilla.service"
# systemd-analyze's measure of what a broken-in service could do: 100 = anything.
EXPOSURE_MAX = 20


@pytest.fixture(scope="module")
def installed(machine, deb):
    done = machine.run("dpkg", "-i", f"/mnt/packages/{deb.name}")
    assert done.returncode == 0, done.stdout + done.stderr
    return machine


def exec_start(machine):
    return re.search(r"^ExecStart=(.*)$", machine.run("cat", UNIT).stdout, re.M)[1].split()


def test_the_user_its_home_and_its_ssh_key_are_there(installed):
    passwd = installed.run("getent", "passwd", "flotilla").stdout
    assert passwd.split(":")[5:] == ["/var/lib/flotilla", "/usr/sbin/nologin\n"], passwd
    said = installed.run("stat", "-c", "%U %a %n", "/var/lib/flotilla", "/etc/flotilla/ssh", "/etc/flotilla/ssh/id_ed25519",
                         "/etc/flotilla/ssh/known_hosts").stdout.split("\n")
    assert said[:4] == ["flotilla 700 /var/lib/flotilla", "flotilla 700 /etc/flotilla/ssh",
                        "flotilla 600 /etc/flotilla/ssh/id_ed25519", "flotilla 600 /etc/flotilla/ssh/known_hosts"]
    options = installed.run("ssh", "-F", "/etc/flotilla/ssh_config", "-G", "far", user="flotilla").stdout
    assert "identityfile /etc/flotilla/ssh/id_ed25519" in options
    assert "userknownhostsfile /etc/flotilla/ssh/known_hosts" in options


def test_man_pages_and_completions_come_with_it(installed):
    listed = installed.run("dpkg", "-L", "flotilla").stdout
    for file in ("/usr/share/man/man1/flotilla-serve.1", "/usr/share/bash-completion/completions/flotilla",
                 "/usr/share/doc/flotilla/copyright", UNIT):
        assert file in listed, file


def test_systemd_finds_nothing_wrong_with_the_unit(installed):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze here")
    done = installed.run("systemd-analyze", "verify", "--man=no", UNIT)
    assert done.returncode == 0 and "flotilla" not in done.stderr, done.stderr
    done = installed.run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", UNIT)
    assert done.returncode == 0, done.stdout
    unit = installed.run("cat", UNIT).stdout
    assert "\nKillMode=process\n" in unit and "\nUser=flotilla\n" in unit


def test_its_command_serves_as_its_user_and_a_restart_keeps_the_runners(installed, tmp_path):
    command = exec_start(installed)
    first = Service(installed, command, tmp_path / "first.log")

    def flotilla(*arguments):
        done = installed.run("/usr/bin/flotilla", *arguments, user="flotilla")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def status():
        code = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/admin/clusters/lab/status').read().decode())"
        return json.loads(installed.run("python3", "-c", code).stdout)["pools"][0]

    flotilla("cluster", "add", "lab", "--node", "lab-1")
    flotilla("load", "lab", f"/mnt/models/{MODEL.name}", "--batch")
    assert status()["alias"] == ALIAS and status()["replicas"][0]["live"]
    assert first.stop(signal.SIGTERM) == 0, first.log.read_text()
    second = Service(installed, command, tmp_path / "second.log")
    try:
        wait_until("its replica serves", lambda: status()["replicas"][0]["live"])
        assert "took over the replica" in second.log.read_text()
    finally:
        second.stop()


def test_it_is_removed_and_purged(installed):
    done = installed.run("dpkg", "--purge", "flotilla")
    assert done.returncode == 0, done.stderr
    assert installed.run("test", "-e", "/var/lib/flotilla").returncode == 1
    assert installed.run("test", "-e", "/etc/flotilla/ssh").returncode == 1
    assert installed.run("test", "-L", "/etc/systemd/system/multi-user.target.wants/flotilla.service").returncode == 1

