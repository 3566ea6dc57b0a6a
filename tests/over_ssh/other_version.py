#!/usr/bin/env python3
"""A flotilla of another version, made of the real one: the same program, whose agent says in its
first frame that it is VERSION and speaks PROTOCOL. machines.Machine.install_other_version fills them in."""

import json
import os
import struct
import subprocess
import sys
import threading

REAL, VERSION, PROTOCOL = "@REAL@", "@VERSION@", int("@PROTOCOL@")

if sys.argv[1:2] == ["version"]:
    print("flotilla", VERSION)
    sys.exit()
if sys.argv[1:2] != ["agent"]:
    os.execv(REAL, [REAL, *sys.argv[1:]])

agent = subprocess.Popen([REAL, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def copy(read, write, close):
    while piece := read():
        write(piece)
    close()


def feed(piece):
    agent.stdin.write(piece)
    agent.stdin.flush()


threading.Thread(target=copy, args=(lambda: os.read(0, 65536), feed, agent.stdin.close), daemon=True).start()
head = agent.stdout.read(4)
if len(head) == 4:
    frame = agent.stdout.read(struct.unpack(">I", head)[0])
    hello = json.loads(frame)
    if hello["type"] == "hello":
        hello |= {"version": VERSION, "protocol": PROTOCOL}
        frame = json.dumps(hello).encode()
    os.write(1, struct.pack(">I", len(frame)) + frame)
    copy(lambda: agent.stdout.read1(65536), lambda piece: os.write(1, piece), lambda: None)
sys.exit(agent.wait())
