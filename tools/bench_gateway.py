#!/usr/bin/env python3
"""bench_gateway.py [--rounds N] [--seconds S] [--connections N]: our relay and nginx's.

Four synthetic runners that answer streams of 100 chunks without computing; our server in front of them, and nginx in
front of the same four sockets (one worker, least_conn, proxy_buffering off), on the same cores, in turns. Prints chunks
a second and times to the first byte; exit code 1 where ours is behind what is promised: at least as many chunks, and
the first byte's median within nginx's + 20 %. (Memory: tests/e2e/test_idle_streams_cost_little_memory.py.)
"""

import argparse
import getpass
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import support  # noqa: E402

NGINX = pathlib.Path(os.environ.get("FLOTILLA_CACHE") or ROOT / ".cache") / "packages/nginx/usr/sbin/nginx"
CONFIGURATION = """daemon off;
user {user};  # the sockets are ours alone
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
{temporary}
  upstream runners {{
    least_conn;
{servers}
    keepalive 64;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    keepalive_requests 1000000;
    location / {{
      proxy_pass http://runners;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def listening(pid):
    """The unix sockets that a runner was told to listen on."""
    words = support.command_line(pid)
    return [words[at + 1] for at, word in enumerate(words) if word == "--unix"]


def start_nginx(folder, sockets):
    port = free_port()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    text = CONFIGURATION.format(
        user=getpass.getuser(), folder=folder, port=port, temporary="".join(f"  {kind}_temp_path {folder}/{kind};\n" for kind in kinds),
        servers="".join(f"    server unix:{path};\n" for path in sockets))
    (folder / "nginx.conf").write_text(text)
    command = [NGINX, "-p", folder, "-e", "stderr", "-c", folder / "nginx.conf"]
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL)

    def listens():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    support.wait_until("nginx listens", listens)
    return process, f"http://127.0.0.1:{port}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    if not NGINX.exists():
        sys.exit(f"bench_gateway: {NGINX} is not there: ./test unpacks it on Debian")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = support.Server(folder, environment={"FLOTILLA_SYNTHETIC_CANNED": "100"})
        nginx = None
        try:
            nodes = [{"id": f"local-{number}"} for number in range(1, 5)]
            server.admin("PUT", "/clusters/local", {"nodes": nodes})
            status, answer = server.admin("POST", "/clusters/local/load", {"model": "synthetic", "batch": True})
            if status != 200:
                sys.exit(f"bench_gateway: {answer}")
            sockets = [path for pid in server.runners() for path in listening(pid)]
            nginx, url = start_nginx(folder, sockets)
            done = support.run_command("bench", "gateway", server.url, url, "--model", "synthetic", "--json", "--rounds",
                                       options.rounds, "--seconds", options.seconds, "--connections",
                                       options.connections, timeout=600)
            print(done.stderr, end="", file=sys.stderr)
            if not done.stdout:
                sys.exit("bench_gateway: nothing was measured")
            ours, theirs = json.loads(done.stdout)["servers"]
        finally:
            if nginx:
                nginx.terminate()
                nginx.wait(30)
            server.stop()
    ratio = ours["chunks_per_s"] / theirs["chunks_per_s"]
    first = ours["first_byte_ms"] / theirs["first_byte_ms"]
    print(f"{'':<10}{'chunks/s':>12}{'first byte p50':>16}")
    for side, row in (("flotilla", ours), ("nginx", theirs)):
        print(f"{side:<10}{row['chunks_per_s']:>12,.0f}{row['first_byte_ms']:>13.2f} ms")
    print(f"{'ratio':<10}{ratio:>12.2f}{first:>16.2f}")
    checks = {"every stream was whole": done.returncode == 0, "at least nginx's chunks a second": ratio >= 1,
              "first byte within nginx's + 20 %": first <= 1.2}
    for words, holds in checks.items():
        print(f"{'ok' if holds else 'FAILED'}: {words}")
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
