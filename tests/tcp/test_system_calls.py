# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""System calls that a server under homa-run makes for each echo, counted by strace. How often it sleeps
depends on the machine; what a sleep costs does not."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from ways import PATIENCE, PROGRAMS, Side, port, two_sides

ECHOES = 1000
# Calls that a server makes while it begins and ends, whatever it does in between.
ONCE = 60
PING = f"""
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
for i in range({ECHOES}):
    s.sendall(b"x" * 64)
    left = 64
    while left:
        left -= len(s.recv(left))
s.close()
"""

pytestmark = [
    pytest.mark.skipif(
        not (PROGRAMS / "tcp_echo_server").exists(), reason="tcp_echo_server is not built"
    ),
    pytest.mark.skipif(not shutil.which("strace"), reason="there is no strace"),
]


def count(server: Side, client: Side, mode: str, trace: Path) -> Counter[str]:
    """Calls by name; those that found nothing have "-" before it."""
    number = port()
    words = server.words([PROGRAMS / "tcp_echo_server", server.v4, number, mode])
    serving = server.space.start(["strace", "-f", "-o", trace, *words])
    assert serving.line(PATIENCE) == "ready", server.log()
    client.run([sys.executable, "-c", PING, server.v4, number])
    found: Counter[str] = Counter()
    said = trace.read_text().splitlines()
    # strace ends with the server, and would leave it behind the other way round.
    os.kill(int(said[-1].split()[0]), signal.SIGKILL)
    serving.wait()
    for line in said:
        call = re.match(r"\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed).*= (-?\d+)( EAGAIN)?", line)
        if call:
            found[f"{'-' if call[3] else ''}{call[1]}"] += 1
    return found


def test_epoll__a_sleep_is_one_call(tmp_path: Path) -> None:
    """Nothing is put into the kernel's set for each sleep, and nothing is read in vain."""
    with two_sides("homad") as (server, client):
        calls = count(server, client, "epoll", tmp_path / "trace")
    waits = calls["epoll_pwait2"] + calls["epoll_pwait"]
    # Each echo was waited for, or strace was not told of what it counts.
    assert waits >= ECHOES // 2, calls
    assert calls["epoll_ctl"] <= ONCE, calls
    assert calls["-read"] <= ONCE, calls
    # A wait that finds an echo asks the kernel's set once, and one that sleeps does so by that.
    assert waits <= 2 * ECHOES + ONCE, calls
