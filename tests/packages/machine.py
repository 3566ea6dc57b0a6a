"""A machine to install on: namespaces of their own above this machine's root, of which nothing is changed."""

import pathlib
import signal
import subprocess

from support import MODEL, ROOT, wait_until

BUILT = ROOT / "build/package"

# In a mount and network namespace of its own: this machine's root, of which only $1 is written to.
MACHINE = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --bind /dev "$1/root/dev"
mount -t proc proc "$1/root/proc"
mkdir -p "$1/root/mnt/packages" "$1/root/mnt/models"
mount --bind "$2" "$1/root/mnt/packages"
mount --bind "$3" "$1/root/mnt/models"
ip link set lo up
echo ready
exec cat
"""


class Machine:
    """Commands run in its namespaces and below its root."""

    def __init__(self, folder):
        self.folder = folder
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", MACHINE, "sh", folder, BUILT,
             MODEL.parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.holder.stdout.readline() == "ready\n"

    def why_not(self):
        return self.holder.communicate()[1].strip()

    def _inside(self, command, user):
        # nsenter's --root would be read before the namespace is entered.
        inside = ["nsenter", "--target", str(self.holder.pid), "--mount", "--net", "chroot", f"{self.folder}/root"]
        if user:
            inside += ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs",
                       "--bounding-set=-all", "env", "-i", "PATH=/usr/bin:/bin", "HOME=/var/lib/flotilla"]
        return [*inside, *map(str, command)]

    def run(self, *command, user=None, timeout=120):
        return subprocess.run(self._inside(command, user), capture_output=True, text=True, check=False,
                              timeout=timeout, stdin=subprocess.DEVNULL)

    def start(self, *command, user=None, log):
        with pathlib.Path(log).open("wb") as out:
            return subprocess.Popen(self._inside(command, user), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    start_new_session=True)

    def stop(self):
        self.holder.stdin.close()
        self.holder.wait(30)


class Service:
    """The unit's command, as its user, in a machine."""

    def __init__(self, machine, command, log):
        self.log = pathlib.Path(log)
        self.process = machine.start(*command, user="flotilla", log=log)
        wait_until("it listens", self._listens)

    def _listens(self):
        text = self.log.read_text()
        assert self.process.poll() is None, text
        return "listening on" in text

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(30)


# $1: the machine's root, in whose namespaces this runs; $2: a control group that is made for it.
BOOT = """
set -e
mkdir "$2"
echo $$ >"$2/cgroup.procs"
exec unshare --mount --pid --cgroup --ipc --uts --fork --kill-child sh -c '
set -e
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
mount -t tmpfs tmpfs "$1/run"
mount -t tmpfs tmpfs "$1/tmp"
exec chroot "$1" env -i container=flotilla PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --unit=flotilla.service --show-status=no --log-target=console --log-level=warning
' sh "$1"
"""


class Booted:
    """systemd as the first process of a machine, with the service as what it is to reach."""

    def __init__(self, machine, log):
        self.log = pathlib.Path(log)
        groups = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()
                  if line.split()[2] == "cgroup2"]
        self.group = pathlib.Path(groups[0] if groups else "/sys/fs/cgroup") / f"flotilla-{machine.holder.pid}"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                ["nsenter", "--target", str(machine.holder.pid), "--mount", "--net", "sh", "-c", BOOT, "sh",
                 f"{machine.folder}/root", self.group], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True)
        self.init = None

    def why_not(self):
        """Nothing, once systemd answers."""
        if self.process.poll() is not None:
            return f"it ended with {self.process.returncode}: {self.log.read_text()[-500:]}"
        below = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if not below:
            return "it has not begun"
        self.init = below[0]
        done = self.run("systemctl", "show", "--property=Version")
        return "" if done.returncode == 0 else done.stderr + self.log.read_text()[-500:]

    def run(self, *command, timeout=120):
        return subprocess.run(["nsenter", "--target", self.init, "--all", "--root", "--wd", *map(str, command)],
                              capture_output=True, text=True, check=False, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def stop(self):
        self.process.kill()
        self.process.wait(30)
        # Of the groups the innermost first; a process that is dying holds its own for a moment.
        wait_until("its groups are gone", self._remove_groups, 30)

    def _remove_groups(self):
        for folder in sorted(self.group.rglob("*/"), key=lambda path: -len(path.parts)) + [self.group]:
            try:
                folder.rmdir()
            except OSError:
                pass
        return not self.group.exists()
