#!/usr/bin/env python3
"""other_holder.py LOCK SOCKET PROTOCOL: an agent that speaks another protocol, holds a machine's run directory
and is still there: it has the lock and the socket, greets whoever attaches, and ends when it is told to."""

import fcntl
import json
import os
import socket
import struct
import sys

LOCK, SOCKET, PROTOCOL = sys.argv[1], sys.argv[2], int(sys.argv[3])


def read_frame(stream):
    """None at its end."""
    head = stream.read(4)
    return json.loads(stream.read(struct.unpack(">I", head)[0])) if len(head) == 4 else None


def serve(connection):
    """Until whoever attached goes; true if it told us to end."""
    stream = connection.makefile("rb")
    first = read_frame(stream)
    if not first or first["type"] != "attach":
        return False
    hello = json.dumps({"type": "hello", "protocol": PROTOCOL, "version": "0.0.0", "platform": "linux-x86_64",
                        "machine_id": "other", "holds": []}).encode()
    connection.sendall(struct.pack(">I", len(hello)) + hello)
    while frame := read_frame(stream):
        if frame["type"] == "end":
            return True
    return False


with open(LOCK, "w", encoding="utf-8") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if os.path.exists(SOCKET):
        os.unlink(SOCKET)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    listener.listen(8)
    ended = False
    while not ended:
        connection, _ = listener.accept()
        try:
            ended = serve(connection)
        except (OSError, struct.error, ValueError):
            pass  # it went in the middle of a frame
        connection.close()
