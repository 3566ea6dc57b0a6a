"""The installed unit, with all that it forbids itself, under a real systemd in a container."""

import json
import os
import shutil
import threading
import time

import pytest

from machine import Booted
from support import MODEL, wait_until


@pytest.fixture(scope="module")
def booted(machine, deb, tmp_path_factory):
    if not os.path.exists("/lib/systemd/systemd") or not shutil.which("nsenter"):
        pytest.skip("there is no systemd here to boot")
    done = machine.run("dpkg", "-i", f"/mnt/packages/{deb.name}")
    assert done.returncode == 0, done.stdout + done.stderr
    made = Booted(machine, tmp_path_factory.mktemp("booted") / "console.log")
    try:
        deadline = time.monotonic() + 30
        reason = made.why_not()
        while reason and made.process.poll() is None and time.monotonic() < deadline:
            threading.Event().wait(0.1)
            reason = made.why_not()
        if reason:
            pytest.skip(f"no systemd can be booted in a container here: {reason}")
        yield made
    finally:
        made.stop()


def status(booted):
    code = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/admin/clusters/lab/status').read().decode())"
    return json.loads(booted.run("python3", "-c", code).stdout)["pools"][0]


def runners(booted):
    return set(booted.run("pgrep", "-f", "flotilla.* runner --supervised").stdout.split())


def property_of(booted, name):
    return booted.run("systemctl", "show", "--value", f"--property={name}", "flotilla").stdout.strip()


def flotilla(booted, *arguments):
    done = booted.run("flotilla", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_restart_of_the_service_loads_nothing_again(booted):
    wait_until("the service is up", lambda: property_of(booted, "ActiveState") == "active" and
               booted.run("flotilla", "cluster", "list").returncode == 0)
    first = property_of(booted, "MainPID")
    assert booted.run("ps", "-o", "user=", "-p", first).stdout.strip() == "flotilla"
    flotilla(booted, "cluster", "add", "lab", "--node", "lab-1")
    flotilla(booted, "load", "lab", f"/mnt/models/{MODEL.name}", "--batch")
    before = runners(booted)
    assert len(before) == 1 and status(booted)["replicas"][0]["resident_bytes"] > 0
    assert booted.run("systemctl", "restart", "flotilla").returncode == 0
    wait_until("its replica serves", lambda: status(booted)["replicas"][0]["live"])
    assert property_of(booted, "MainPID") != first and runners(booted) == before
    doctor = booted.run("flotilla", "doctor")
    assert doctor.returncode == 0, doctor.stdout


def test_an_upgrade_loads_nothing_again_and_keeps_what_was_set(booted, deb):
    first, before = property_of(booted, "MainPID"), runners(booted)
    assert before and booted.run("sh", "-c", "echo '# ours' >>/etc/flotilla/flotilla.yaml").returncode == 0
    key = booted.run("cat", "/etc/flotilla/ssh/id_ed25519.pub").stdout
    done = booted.run("dpkg", "-i", f"/mnt/packages/{deb.name}")
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until("its replica serves", lambda: status(booted)["replicas"][0]["live"])
    assert property_of(booted, "MainPID") != first and runners(booted) == before
    assert "# ours" in booted.run("cat", "/etc/flotilla/flotilla.yaml").stdout
    assert booted.run("cat", "/etc/flotilla/ssh/id_ed25519.pub").stdout == key != ""


def test_it_is_started_with_the_machine(booted):
    assert booted.run("systemctl", "is-enabled", "flotilla").stdout.strip() == "enabled"


def test_what_ends_by_itself_is_started_again(booted):
    first = property_of(booted, "MainPID")
    assert booted.run("kill", "-KILL", first).returncode == 0
    wait_until("it is back", lambda: property_of(booted, "MainPID") not in ("0", first) and
               booted.run("flotilla", "cluster", "list").returncode == 0)


def test_removed_and_installed_again_it_serves_what_it_served(booted, deb):
    assert booted.run("dpkg", "--remove", "flotilla").returncode == 0
    assert property_of(booted, "ActiveState") == "inactive"
    done = booted.run("dpkg", "-i", f"/mnt/packages/{deb.name}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert booted.run("systemctl", "is-enabled", "flotilla").stdout.strip() == "enabled"
    wait_until("its replica serves", lambda: booted.run("flotilla", "cluster", "list").returncode == 0 and
               status(booted)["replicas"][0]["live"])


def test_one_that_was_disabled_is_not_started_by_an_upgrade(booted, deb):
    assert booted.run("systemctl", "disable", "--now", "flotilla").returncode == 0
    assert booted.run("dpkg", "-i", f"/mnt/packages/{deb.name}").returncode == 0
    assert property_of(booted, "ActiveState") == "inactive"
    assert booted.run("systemctl", "is-enabled", "flotilla").stdout.strip() == "disabled"
