# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP in a homad of several threads: the first thread has all connections, and the others hand it the
segments that their device queues bring."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest
from homad import Host, needs_homad, needs_root
from netns import eventually
from ops_tools import snapshot
from test_cores import dedicated, serves_two_ways
from test_ops_tcp import unmodified
from test_tcp_many import PATIENT

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core"),
]

RULE = {"listen": [5000, 5999], "connect": [5000, 5999]}
STREAMS = 16
BYTES = 200_000
# Sends pieces over many connections in turn, and checks what comes back.
CLIENT = """
import hashlib, socket, sys
to, port, streams, size = sys.argv[1], *map(int, sys.argv[2:])
ends = [socket.create_connection((to, port)) for _ in range(streams)]
for turn in range(size // 10000):
    data = [hashlib.sha256(b"%d %d" % (turn, i)).digest() * 313 for i in range(streams)]
    for end, piece in zip(ends, data):
        end.sendall(piece)
    for end, piece in zip(ends, data):
        got = b""
        while len(got) < len(piece):
            more = end.recv(len(piece) - len(got))
            assert more, "the end came early"
            got += more
        assert got == piece
for end in ends:
    end.close()
print("right", flush=True)
"""


def by_homad(*argv: object) -> list[str]:
    return unmodified(*map(str, argv))


def by_kernel(*argv: object) -> list[str]:
    return [str(one) for one in argv]


Way = Callable[..., list[str]]


def echoes(server: Host, client: Host, way: Way, back: Way, port: int = 5000) -> None:
    """Many connections of `client` by `back` to `server` by `way`, whose bytes come back right."""
    serving = server.start(way(sys.executable, "-c", PATIENT, port))
    assert serving.line() == "ready"
    done = client.run(back(sys.executable, "-c", CLIENT, server.v4, port, STREAMS, BYTES))
    assert done.stdout.strip() == "right", done
    serving.stop()


def of_threads(host: Host, name: str) -> list[int]:
    return [int(thread["counters"][name]) for thread in snapshot(host.homad)["threads"]]


@pytest.mark.parametrize("back", [by_homad, by_kernel])
def test_streams__come_in_at_every_thread(back: Way) -> None:
    """The host with two threads serves connections, and opens some."""
    with dedicated({"scale": False}, tcp_rule=[RULE]) as (a, b):
        echoes(a, b, by_homad, back)
        echoes(b, a, back, by_homad, 5001)
        handed = of_threads(a, "tcp_handed")
        assert handed[0] == 0
        # The kernel spreads connections over the device's two queues; a homad sends all by its first.
        if back is by_kernel:
            assert handed[1] > 100
        assert of_threads(a, "tcp_handed_lost") == [0, 0]
        assert [app for app in snapshot(a.homad)["apps"] if app["thread"] != 0] == []


def test_streams__while_threads_come_and_go() -> None:
    """Queues follow the threads, attachments with streams stay where they are, and Homa's RPCs go on."""
    threads = {"scale": True, "scale_busy": 0.9, "scale_idle": 0.95, "scale_ms": 10}
    with dedicated(threads, tcp_rule=[RULE]) as (a, b):
        for port in range(5000, 5003):
            echoes(a, b, by_homad, by_homad, port)
        serves_two_ways(a, b)
        echoes(b, a, by_homad, by_homad, 5003)
        a.homad.await_log("fast path changed its cores.*from=1 to=2")
        a.homad.await_log("fast path changed its cores.*from=2 to=1")
        assert of_threads(a, "tcp_handed_lost") == [0, 0]


def test_streams__a_program_of_the_second_thread_begins_them_at_the_first() -> None:
    """Attachments of Homa alone take turns at the threads; one that begins with streams moves."""
    with dedicated({"scale": False}, tcp_rule=[RULE]) as (a, b):
        first = [
            a.start(by_homad(sys.executable, "-c", PATIENT, port)) for port in (5000, 5001, 5002)
        ]
        for one in first:
            assert one.line() == "ready"

        def at_home() -> bool:
            apps = snapshot(a.homad)["apps"]
            return len(apps) == 3 and all(app["thread"] == 0 for app in apps)

        eventually(at_home)
        serves_two_ways(a, b)
        for one in first:
            one.stop()
