"""Other machines, as far as a test can have them: network namespaces of this host, each with a real
sshd, its own host key, its own state directory and a cable that can be cut."""

import json
import os
import pathlib
import queue
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from support import BINARY, is_runner, wait_until


def run(*command, check=True):
    return subprocess.run([str(part) for part in command], check=check, text=True, capture_output=True)


def why_not():
    """Why there can be none here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "iptables", "nsenter", "ssh", "ssh-keygen", "ss"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    if not pathlib.Path("/usr/sbin/sshd").exists():
        return "sshd is not installed"
    name = f"flt-{os.getpid()}"
    made = run("ip", "netns", "add", name, check=False)
    if made.returncode != 0:
        return f"network namespaces are forbidden here: {made.stderr.strip()}"
    wired = run("ip", "-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1", check=False)
    run("ip", "netns", "del", name)
    return f"no virtual cables here: {wired.stderr.strip()}" if wired.returncode else None


class Machine:
    """One of them. `name` is its alias in the ssh config of the test."""

    def __init__(self, folder, name, net, number):
        self.folder = folder / name
        self.folder.mkdir()
        self.name = name
        self.space = f"flt-{os.getpid()}-{name}"
        self.cable = f"f{os.getpid() % 100000}-{number}"
        self.here, self.address = (f"{net}.{4 * number + 1}", f"{net}.{4 * number + 2}")
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        (self.bin / "flotilla").symlink_to(BINARY)
        self.models = self.folder / "models"
        self.models.mkdir()
        self.sshd = self.group = None
        self.sshd_settings = ""  # more lines of its sshd_config
        self.agent_socket = None
        self.holders = []
        run("ip", "netns", "add", self.space)
        run("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        run("ip", "addr", "add", f"{self.here}/30", "dev", self.cable)
        run("ip", "link", "set", self.cable, "up")
        run("ip", "-n", self.space, "addr", "add", f"{self.address}/30", "dev", "eth0")
        for device in ("lo", "eth0"):
            run("ip", "-n", self.space, "link", "set", device, "up")
        self.new_host_key()

    def install_other_version(self, version, protocol):
        text = (pathlib.Path(__file__).parent / "other_version.py").read_text()
        for name, value in (("REAL", BINARY), ("VERSION", version), ("PROTOCOL", protocol)):
            text = text.replace(f"@{name}@", str(value))
        program = self.bin / "flotilla"
        program.unlink()
        program.write_text(text)
        program.chmod(0o755)

    def hold_with_other_protocol(self, protocol):
        """Instead of the agent that held its run directory a moment ago, and is gone: one that speaks
        `protocol`, and is there already when the next one comes."""
        script = pathlib.Path(__file__).parent / "other_holder.py"
        lock = self.folder / "state/flotilla/agent/agent.lock"
        holder = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.space}", sys.executable, str(script), str(lock), self.agent_socket,
             str(protocol)], stdin=subprocess.DEVNULL, start_new_session=True)
        self.holders.append(holder)
        wait_until("it listens", self.find_agent_socket, 10)
        return holder

    def find_agent_socket(self):
        """At which an agent there listens for others; None if none does."""
        words = self.inside("ss", "-xlH").stdout.split()
        return next((word for word in words if word.endswith("/agent.sock")), None)

    def new_host_key(self):
        for old in self.folder.glob("host_key*"):
            old.unlink()
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "host_key")

    @property
    def host_key(self):
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    def inside(self, *command, check=True):
        return run("ip", "netns", "exec", self.space, *command, check=check)

    def start_sshd(self):
        config = self.folder / "sshd_config"
        config.write_text(f"""
ListenAddress {self.address}
HostKey {self.folder}/host_key
AuthorizedKeysFile {self.folder}/authorized_keys
StrictModes no
PidFile none
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv HOME={self.folder} XDG_STATE_HOME={self.folder}/state PATH={self.bin}:/usr/bin:/bin
{self.sshd_settings}
""")
        pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self.folder / "sshd.log").open("ab") as log:
            self.sshd = subprocess.Popen(
                # Not `ip netns exec`: it hides the control groups from what it starts.
                ["nsenter", f"--net=/run/netns/{self.space}", "/usr/sbin/sshd", "-D", "-e", "-f", str(config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_until("sshd listens", lambda: ":22 " in self.inside("ss", "-ltn").stdout, 10)

    def limit_memory(self, limit):
        """What sshd starts from now on may use, together. Control groups of version 1."""
        group = pathlib.Path("/sys/fs/cgroup/memory") / self.space
        try:
            group.mkdir()
        except OSError as error:
            pytest.skip(f"no memory control group can be made here: {error}")
        self.group = group
        (group / "memory.limit_in_bytes").write_text(str(limit))
        for pid in self.pids():
            (group / "cgroup.procs").write_text(str(pid))

    def pids(self):
        return [int(pid) for pid in run("ip", "netns", "pids", self.space).stdout.split()]

    def runners(self):
        return sorted(pid for pid in self.pids() if is_runner(pid))

    def end_sshd(self):
        """The daemon and every session of it; what the sessions started lives on."""
        for pid in self.pids():
            name = pathlib.Path(f"/proc/{pid}/comm")
            if name.exists() and name.read_text().strip() == "sshd":
                os.kill(pid, signal.SIGKILL)
        self.sshd.wait()

    def restart_sshd(self, settings=""):
        self.end_sshd()
        self.sshd_settings = settings
        self.start_sshd()

    def power_off(self):
        """Everything on it ends at once and nobody says goodbye."""
        self.cut()
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.sshd.wait()
        wait_until("nothing runs there", lambda: not self.pids(), 10)

    def power_on(self):
        self.mend()
        self.start_sshd()

    def cut(self):
        """Packets are dropped, both ways; nobody gets an RST."""
        for chain in ("INPUT", "OUTPUT"):
            self.inside("iptables", "-A", chain, "-j", "DROP")

    def mend(self):
        for chain in ("INPUT", "OUTPUT"):
            self.inside("iptables", "-F", chain)

    def remove(self):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for child in (self.sshd, *self.holders):
            if child:
                child.wait()
        run("ip", "link", "del", self.cable, check=False)
        run("ip", "netns", "del", self.space, check=False)
        if self.group:
            wait_until("its control group is empty", lambda: not (self.group / "cgroup.procs").read_text(), 10)
            self.group.rmdir()

    def node(self, **changes):
        return {"id": self.name, "transport": "ssh", "host": self.name} | changes


class Proxy:
    """A TCP way to a machine that is slow and breaks: each piece is held back for `delay` seconds and up
    to `jitter` more, both ways. reset() ends all its connections with an RST; between hold() and let_go()
    nothing comes through."""

    def __init__(self, address, delay, jitter):
        self.address, self.delay, self.jitter = address, delay, jitter
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = set()
        self.flows = threading.Event()
        self.flows.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((self.address, 22), 10)
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                self.sockets.add(one)
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, source, sink):
        pieces = queue.Queue()
        threading.Thread(target=self._deliver, args=(pieces, sink), daemon=True).start()
        last = 0.0
        while True:
            try:
                piece = source.recv(65536)
            except OSError:
                piece = b""
            # Never before the piece in front of it.
            last = max(last, time.monotonic() + self.delay + random.random() * self.jitter)
            pieces.put((last, piece))
            if not piece:
                return

    def _deliver(self, pieces, sink):
        pause = threading.Event()
        while True:
            due, piece = pieces.get()
            pause.wait(max(0.0, due - time.monotonic()))
            self.flows.wait()
            try:
                if not piece:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(piece)
            except OSError:
                return

    def hold(self):
        self.flows.clear()

    def let_go(self):
        self.flows.set()

    def reset(self):
        sockets, self.sockets = self.sockets, set()
        for one in sockets:
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RD)
                one.close()
            except OSError:
                pass

    def close(self):
        self.listener.close()
        self.let_go()
        self.reset()


class Machines:
    """Some machines, and an ssh config by which a server reaches them."""

    def __init__(self, folder, names):
        self.folder = folder
        self.all = []
        # Of this process: several run at the same time, each with machines of its own.
        net = f"10.{64 + os.getpid() % 187}.{os.getpid() // 187 % 251}"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "id")
        try:
            for number, name in enumerate(names):
                machine = Machine(folder, name, net, number)
                self.all.append(machine)
                shutil.copy(folder / "id.pub", machine.folder / "authorized_keys")
                machine.start_sshd()
        except BaseException:
            self.remove()
            raise
        self.known_hosts = folder / "known_hosts"
        self.write_known_hosts()
        self.proxies = {}
        self.write_config()
        ssh = folder / "ssh"
        ssh.write_text(f"#!/bin/sh\nexec ssh -F {folder}/ssh_config \"$@\"\n")
        ssh.chmod(0o755)
        self.environment = {"FLOTILLA_SSH": str(ssh)}

    def write_config(self):
        hosts = ""
        for machine in self.all:
            proxy = self.proxies.get(machine.name)
            where = f"127.0.0.1\n  Port {proxy.port}" if proxy else machine.address
            hosts += f"Host {machine.name}\n  HostName {where}\n  HostKeyAlias {machine.address}\n"
        folder = self.folder
        (folder / "ssh_config").write_text(f"""{hosts}
Host *
  User root
  IdentityFile {folder}/id
  IdentitiesOnly yes
  UserKnownHostsFile {self.known_hosts}
  GlobalKnownHostsFile /dev/null
""")

    def put_proxy(self, machine, **how):
        self.proxies[machine.name] = Proxy(machine.address, **how)
        self.write_config()
        return self.proxies[machine.name]

    def write_known_hosts(self):
        self.known_hosts.write_text("".join(f"{machine.address} {machine.host_key}\n" for machine in self.all))

    def __iter__(self):
        return iter(self.all)

    def __getitem__(self, number):
        return self.all[number]

    def nodes(self, **changes):
        return [machine.node(**changes) for machine in self.all]

    def ssh_processes(self):
        """Pids of the ssh clients that use this config."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if f"{self.folder}/ssh_config".encode() in words:
                found.append(int(entry.name))
        return found

    def remove(self):
        for proxy in getattr(self, "proxies", {}).values():
            proxy.close()
        for machine in self.all:
            machine.remove()


def make(folder, names):
    reason = why_not()
    if reason:
        pytest.skip(reason)
    return Machines(folder, names)


def node_state(server, node, cluster="lab"):
    """What /admin/stream says of a node."""
    return {one["id"]: one for one in overview(server, cluster)["nodes"]}[node]


def overview(server, cluster="lab"):
    connection = server.connection(10)
    connection.request("GET", "/admin/stream")
    answer = connection.getresponse()
    text = b""
    while b"\n\n" not in text:
        text += answer.read1()
    connection.close()
    data = json.loads(text.split(b"data: ", 1)[1].split(b"\n\n", 1)[0])
    return {one["id"]: one for one in data["clusters"]}[cluster]

