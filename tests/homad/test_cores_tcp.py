# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP in a homad of several threads: each program is at home at one of them, and threads hand each other
the segments that their device queues bring."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from homad import Host, Process, needs_homad, needs_root
from netns import eventually
from ops_tools import snapshot
from test_cores import dedicated, serves_two_ways
from test_ops_tcp import unmodified
from test_tcp_many import PATIENT

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.sanitized,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core"),
]

RULE = {"listen": [5000, 5999], "connect": [5000, 5999]}
# Threads come with any load, and go without it, every 10 ms.
RESTLESS = {"scale": True, "scale_busy": 0.9, "scale_idle": 0.95, "scale_ms": 10}
STREAMS = 16
BYTES = 200_000
# Sends a piece over each of many connections, and checks what comes back.
EXCHANGE = """
import hashlib, socket, sys
def exchange(ends, turn, digests):
    data = [hashlib.sha256(b"%d %d" % (turn, i)).digest() * digests for i in range(len(ends))]
    for end, piece in zip(ends, data):
        end.sendall(piece)
    for end, piece in zip(ends, data):
        got = b""
        while len(got) < len(piece):
            more = end.recv(len(piece) - len(got))
            assert more, "the end came early"
            got += more
        assert got == piece, "wrong bytes"
"""
CLIENT = (
    EXCHANGE
    + """
to, port, streams, size = sys.argv[1], *map(int, sys.argv[2:])
ends = [socket.create_connection((to, port)) for _ in range(streams)]
for turn in range(size // 10000):
    exchange(ends, turn, 313)
for end in ends:
    end.close()
print("right", flush=True)
"""
)


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


def apps_of(host: Host) -> list[dict[str, Any]]:
    return list(snapshot(host.homad)["apps"])


@pytest.mark.parametrize("back", [by_homad, by_kernel])
def test_programs__are_spread_over_the_threads(back: Way) -> None:
    """Two servers of one homad are at home at different threads, and both serve at once."""
    with dedicated({"scale": False}, tcp_rule=[RULE]) as (a, b):
        ports = (5000, 5001)
        servers = [a.start(by_homad(sys.executable, "-c", PATIENT, port)) for port in ports]
        for one in servers:
            assert one.line() == "ready"
        assert sorted(app["thread"] for app in apps_of(a)) == [0, 1]
        clients = [
            b.start(back(sys.executable, "-c", CLIENT, a.v4, port, STREAMS, BYTES))
            for port in ports
        ]
        for one in clients:
            assert one.line() == "right"
        handed = of_threads(a, "tcp_handed")
        # The kernel spreads connections over the device's two queues; a homad sends all of a program
        # by the queue of its thread.
        if back is by_kernel:
            assert min(handed) > 100
        assert of_threads(a, "tcp_handed_lost") == [0, 0]
        for one in servers + clients:
            one.stop()


def test_programs__of_one_host_at_different_threads() -> None:
    """Their bytes go from the one's thread to the other's, without packets."""
    with dedicated(RESTLESS, tcp_rule=[RULE]) as (a, _):
        echoes(a, a, by_homad, by_homad)
        counts = snapshot(a.homad)["tcp"]["host"]
        assert counts["local_opened"] == STREAMS
        assert counts["local_bytes"] == 2 * STREAMS * (BYTES // 10000) * 32 * 313


@pytest.mark.parametrize("back", [by_homad, by_kernel])
def test_streams__come_in_at_every_thread(back: Way) -> None:
    """The host with two threads serves connections, and opens some."""
    with dedicated({"scale": False}, tcp_rule=[RULE]) as (a, b):
        echoes(a, b, by_homad, back)
        echoes(b, a, back, by_homad, 5001)
        # A homad sends all by one queue of its device.
        if back is by_kernel:
            assert sum(of_threads(a, "tcp_handed")) > 100
        assert of_threads(a, "tcp_handed_lost") == [0, 0]


def test_streams__while_threads_come_and_go() -> None:
    """Queues and TCP follow the threads, and Homa's RPCs go on."""
    with dedicated(RESTLESS, tcp_rule=[RULE]) as (a, b):
        for port in range(5000, 5003):
            echoes(a, b, by_homad, by_homad, port)
        serves_two_ways(a, b)
        echoes(b, a, by_homad, by_homad, 5003)
        a.homad.await_log("fast path changed its cores.*from=1 to=2")
        a.homad.await_log("fast path changed its cores.*from=2 to=1")
        assert of_threads(a, "tcp_handed_lost") == [0, 0]


@pytest.mark.parametrize("back", [by_homad, by_kernel])
def test_programs__while_threads_come_and_go(back: Way) -> None:
    """The connections of two programs go on while their threads end and begin."""
    with dedicated(RESTLESS, tcp_rule=[RULE]) as (a, b):
        ports = (5000, 5001)
        servers = [a.start(by_homad(sys.executable, "-c", PATIENT, port)) for port in ports]
        for one in servers:
            assert one.line() == "ready"
        clients = [
            b.start(back(sys.executable, "-c", CLIENT, a.v4, port, STREAMS, 5 * BYTES))
            for port in ports
        ]
        for one in clients:
            assert one.line(60) == "right"
        log = a.homad.log()
        assert log.count("fast path changed its cores") > 4, log
        # They began at two instances of TCP, which the same thread may run now.
        for one in servers + clients:
            one.stop()


def test_programs__one_is_killed_while_the_other_serves() -> None:
    """What the killed one had is free again, also for a program of the other thread."""
    with dedicated(RESTLESS, tcp_rule=[RULE]) as (a, b):
        stays = a.start(by_homad(sys.executable, "-c", PATIENT, 5000))
        dies = a.start(by_homad(sys.executable, "-c", PATIENT, 5001))
        assert stays.line() == dies.line() == "ready"
        client = b.start(by_kernel(sys.executable, "-c", CLIENT, a.v4, 5000, STREAMS, 5 * BYTES))
        for turn in range(5):
            victim = b.start(
                by_kernel(sys.executable, "-c", CLIENT, a.v4, 5001, STREAMS, 50 * BYTES)
            )
            eventually(lambda: len(apps_of(a)) == 2)
            dies.send_signal(9)
            # Its connections are reset, and the client says so.
            assert victim.wait()[0] != 0, turn
            dies = a.start(by_homad(sys.executable, "-c", PATIENT, 5001))
            assert dies.line() == "ready"
        assert client.line(60) == "right"
        done = b.run(by_kernel(sys.executable, "-c", CLIENT, a.v4, 5001, STREAMS, BYTES))
        assert done.stdout.strip() == "right", done
        for one in (stays, dies, client):
            one.stop()


# Accepts a connection, lets no more come, and waits for its end.
ONLY_ONE = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
print("ready", flush=True)
one, _ = listener.accept()
listener.close()
print("closed", flush=True)
assert one.recv(1) == b""
one.close()
print("over", flush=True)
"""
# Opens connections, as many as there are ports for. A byte goes there and back on each, after each SIGUSR1.
OPENER = """
import signal, socket, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
to, port, tries = sys.argv[1], *map(int, sys.argv[2:])
ends = []
for _ in range(tries):
    try:
        ends.append(socket.create_connection((to, port)))
    except OSError:
        time.sleep(0.1)
print(len(ends), flush=True)
while True:
    signal.sigwait([signal.SIGUSR1])
    for end in ends:
        end.sendall(b"x")
    for end in ends:
        assert end.recv(1) == b"x"
    print("right", flush=True)
"""
HOLDER = "import socket, sys, time; one = socket.create_connection((sys.argv[1], int(sys.argv[2]))); time.sleep(1000)"


def test_ports__of_listeners_that_have_ended() -> None:
    """A connection that came to such a port goes on. The port does not become one that homad keeps for
    programs of another thread: nobody would know whose it is when that connection ends."""
    first = 256
    with dedicated({"scale": False}, tcp_rule=[RULE], tcp={"ports": 1024}) as (a, b):
        server = b.start(by_kernel(sys.executable, "-c", PATIENT, 5000))
        keeper = a.start(by_homad(sys.executable, "-c", ONLY_ONE, 5555))
        assert server.line() == keeper.line() == "ready"
        holder = b.start(by_kernel(sys.executable, "-c", HOLDER, a.v4, 5555))
        assert keeper.line() == "closed"
        a.run(["sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=5555 5555"])
        opener = a.start(by_homad(sys.executable, "-c", OPENER, b.v4, 5000, first + 10))
        assert int(opener.line(120)) >= first
        assert sorted(app["thread"] for app in apps_of(a)) == [0, 1]
        for turn in range(2):
            opener.send_signal(signal.SIGUSR1)
            assert opener.line(60) == "right", turn
            if not turn:
                holder.stop()
                assert keeper.line() == "over"
                keeper.wait()
        for one in (opener, server):
            one.stop()


# Says how many connections came to it, among those that share the port, when it is told to.
SHARER = """
import signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
at = (sys.argv[2:] or [""])[0]
listener = socket.create_server((at, int(sys.argv[1])), backlog=1000, reuse_port=True)
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
listener.setblocking(False)
have = []
try:
    while True:
        have.append(listener.accept())
except BlockingIOError:
    print(len(have), flush=True)
signal.pause()
"""
MANY = """
import signal, socket, sys
ends = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(int(sys.argv[3]))]
print("open", flush=True)
signal.pause()
"""


def parts_of(a: Host, b: Host, where: str, sharers: list[Process], count: int) -> list[int]:
    """How many of `count` connections, opened within the host or outside, each program that listens has got."""
    host, way = (a, by_homad) if where == "within" else (b, by_kernel)
    client = host.start(way(sys.executable, "-c", MANY, a.v4, 5000, count))
    assert client.line(200) == "open"
    # Connections within the host are open when the client knows of them; others a moment later.
    eventually(lambda: snapshot(a.homad)["tcp"]["connections"] >= count)
    parts = []
    for one in sharers:
        one.send_signal(signal.SIGUSR1)
        parts.append(int(one.line(60)))
    client.stop()
    return parts


@pytest.mark.parametrize("where", ["within", "outside"])
def test_programs__that_share_a_port_get_equal_parts(where: str) -> None:
    """Two of them are at home at one thread, and one at the other."""
    count = 400
    with dedicated({"scale": False}, tcp_rule=[RULE]) as (a, b):
        sharers = []
        for _ in range(3):
            sharers.append(a.start(by_homad(sys.executable, "-c", SHARER, 5000)))
            assert sharers[-1].line() == "ready"
        assert sorted(app["thread"] for app in apps_of(a)) == [0, 0, 1]
        parts = parts_of(a, b, where, sharers, count)
        assert sum(parts) == count, parts
        assert min(parts) > 90 and max(parts) < 172, parts
        for one in sharers:
            one.stop()


@pytest.mark.parametrize("where", ["within", "outside"])
def test_programs__at_an_address_go_before_those_at_all(where: str) -> None:
    """Of programs of two threads that share a port, the one at the address alone gets the connections to it, as
    with the kernel."""
    count = 40
    with dedicated({"scale": False}, tcp_rule=[RULE]) as (a, b):
        sharers = []
        for at in ([], [a.v4]):
            sharers.append(a.start(by_homad(sys.executable, "-c", SHARER, 5000, *at)))
            assert sharers[-1].line() == "ready"
        assert sorted(app["thread"] for app in apps_of(a)) == [0, 1]
        parts = parts_of(a, b, where, sharers, count)
        assert parts == [0, count]
        for one in sharers:
            one.stop()


GIVER = """
import os, signal, socket, sys
path, to, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
unix = socket.create_server(path, family=socket.AF_UNIX)
one = socket.create_connection((to, port))
print("ready", flush=True)
for _ in range(2):
    there = unix.accept()[0]
    socket.send_fds(there, [b"x"], [one.fileno()])
    assert there.recv(1) == b"x"
"""
TAKER = """
import errno, socket, sys
path, port = sys.argv[1], int(sys.argv[2])
listener = socket.create_server(("", port)) if port else None
unix = socket.socket(socket.AF_UNIX)
unix.connect(path)
one = socket.socket(fileno=socket.recv_fds(unix, 1, 1)[1][0])
if port:
    try:
        one.send(b"x")
    except OSError as wrong:
        print(errno.errorcode[wrong.errno], flush=True)
else:
    one.sendall(b"right")
    print(one.recv(5, socket.MSG_WAITALL).decode(), flush=True)
unix.send(b"x")
"""


def test_sockets__are_not_passed_to_another_thread(tmp_path: Path) -> None:
    """The taker has some at its own thread. It is told so, and counted. Who has none yet moves."""
    path = tmp_path / "there"
    with dedicated({"scale": False}, tcp_rule=[RULE]) as (a, b):
        server = b.start(by_kernel(sys.executable, "-c", PATIENT, 5000))
        assert server.line() == "ready"
        giver = a.start(by_homad(sys.executable, "-c", GIVER, path, b.v4, 5000))
        assert giver.line() == "ready"
        words = by_homad(sys.executable, "-c", TAKER, path)
        done = a.run(["env", "HOMA_PRELOAD_DEBUG=1", *words, "5001"])
        assert done.stdout.strip() == "ENOTCONN"
        assert "at another thread of homad" in done.stderr, done.stderr
        counts = snapshot(a.homad)["tcp"]
        assert [counts[n] for n in ("taken", "takes_refused", "takes_elsewhere")] == [0, 1, 1]
        done = a.run([*words, "0"])
        assert done.stdout.strip() == "right"
        counts = snapshot(a.homad)["tcp"]
        assert [counts[n] for n in ("taken", "takes_refused", "takes_elsewhere")] == [1, 1, 1]
        assert giver.wait()[0] == 0
        server.stop()


def test_programs__beside_those_of_homa() -> None:
    """Programs with TCP take turns at the threads, and Homa's go on at both."""
    with dedicated({"scale": False}, tcp_rule=[RULE]) as (a, b):
        first = [
            a.start(by_homad(sys.executable, "-c", PATIENT, port)) for port in (5000, 5001, 5002)
        ]
        for one in first:
            assert one.line() == "ready"
        assert sorted(app["thread"] for app in apps_of(a)) == [0, 0, 1]
        serves_two_ways(a, b)
        for one in first:
            one.stop()
