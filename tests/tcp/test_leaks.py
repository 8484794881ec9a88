# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs and daemons that open and close many connections do not grow."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from ways import PROGRAMS, Side, port, two_sides

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "tcp_calls").exists(), reason="tcp_calls is not built"
)

# Connections until all is as large as it becomes, and those after which it must be as large still.
# A leak of 100 bytes for each is 300 KB.
FIRST, MORE = 1000, 3000
ROOM_KB = 200
# Bytes, or fewer, that a daemon keeps for a minute of a connection in TIME_WAIT.
ENDED = 128

COMMON = """
import socket, sys
address, port, first, more = sys.argv[1], *map(int, sys.argv[2:5])

def size():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

def many(one):
    for _ in range(first):
        one()
    before = size()
    for _ in range(more):
        one()
    print(before, size(), flush=True)
"""

SERVER = """
listener = socket.create_server((address, port), backlog=64)
print("ready", flush=True)

def one():
    with listener.accept()[0] as peer:
        peer.sendall(peer.recv(100))
        assert peer.recv(1) == b""

many(one)
"""

CLIENT = """
def one():
    with socket.create_connection((address, port), timeout=60) as peer:
        peer.sendall(b"x" * 100)
        assert len(peer.recv(100)) > 0

many(one)
"""

BOTH = """
listener = socket.create_server((address, port), backlog=64)

def one():
    near = socket.create_connection((address, port), timeout=60)
    far = listener.accept()[0]
    near.sendall(b"x" * 100)
    assert len(far.recv(100)) > 0
    near.close()
    far.close()

many(one)
"""


@pytest.fixture(scope="module")
def accelerated() -> Iterator[tuple[Side, Side]]:
    with two_sides("homad") as sides:
        yield sides


def grown(said: str) -> int:
    """KB by which a program has grown from its first connections to its last."""
    before, after = map(int, said.split()[-2:])
    return after - before


def test_connections_between_hosts__leave_nothing(accelerated: tuple[Side, Side]) -> None:
    server_side, client_side = accelerated
    words = [server_side.v4, port(), FIRST, MORE]
    sizes = []
    for _ in range(2):
        server = server_side.start([sys.executable, "-c", COMMON + SERVER, *words])
        assert server.line() == "ready"
        client = client_side.run([sys.executable, "-c", COMMON + CLIENT, *words])
        status, said, complaint = server.wait()
        assert status == 0, complaint
        assert grown(client.stdout) < ROOM_KB
        assert grown(said) < ROOM_KB
        sizes.append([side.homad.rss() for side in accelerated if side.homad])
    ended_kb = (FIRST + MORE) * ENDED // 1024
    assert all(b - a < ROOM_KB + ended_kb for a, b in zip(*sizes, strict=True)), sizes


def test_connections_within_a_host__leave_nothing(accelerated: tuple[Side, Side]) -> None:
    side = accelerated[0]
    said = side.run([sys.executable, "-c", COMMON + BOTH, side.v4, port(), FIRST, MORE]).stdout
    assert grown(said) < ROOM_KB
