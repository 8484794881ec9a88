# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The slow path's threads: what applications wait for never waits for what people ask for.

A thread that takes long is one that is stopped (by ptrace, which stops that thread alone), or that
reads a file which does not end. Then everything else must go on, in an order that no clock decides.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attachtool import (
    BIND,
    LISTEN,
    LISTEN_ON,
    METRIC,
    METRICS,
    ROUTE,
    SEGMENT,
    ATTACH,
    Client,
    request,
)
from homad import Homad, Host, needs_homad, needs_root, one_host, two_hosts
from netns import eventually
from ops_tools import RPCS, Raw, serving

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

STREAMS = Path(__file__).parent / "streamtool.py"
RULES = """
[protocol]
timeout_us = 20000000

[[tcp_rule]]
listen = [1000, 9999]
connect = [1000, 9999]
"""
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def thread(homad: Homad, name: str) -> int:
    """The number of homad's thread of that name."""
    for task in Path(f"/proc/{homad.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise AssertionError(f"homad has no thread {name}")


def ptrace(request: int, tid: int) -> None:
    if _libc.ptrace(request, tid, None, None):
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of {tid}")


@contextmanager
def stopped(homad: Homad, name: str) -> Iterator[None]:
    """homad without one of its threads."""
    tid = thread(homad, name)
    ptrace(PTRACE_SEIZE, tid)
    try:
        ptrace(PTRACE_INTERRUPT, tid)
        os.waitpid(tid, WALL)
        yield
    finally:
        ptrace(PTRACE_DETACH, tid)


def engine_job(client: Client) -> None:
    """Something that a fast-path thread does between two rounds, by way of the slow path."""
    answer = client.ask(METRICS)
    assert answer.error == 0 and answer.total
    client.records(answer.total, METRIC.size)


def first_request(host: Host, to: str) -> None:
    """A new attachment, and an RPC to a destination that nobody has sent to."""
    done = host.run([RPCS, "ask", to, 4000, 1, 100, 1])
    assert done.stdout.splitlines()[-1] == "done 1 failed 0"


def stream(host: Host, to: str) -> None:
    """A TCP connection of a new attachment."""
    done = host.run([sys.executable, STREAMS, host.homad.socket, "send", to, 5000, 1000])
    assert done.stdout.strip() == "echoed 1000"


def pending(client: Client) -> bool:
    """No answer is there."""
    return not select.select([client.socket], [], [], 0)[0]


@contextmanager
def endless_file(homad: Homad) -> Iterator[int]:
    """homad reads its configuration, and has not come to its end; what is written to the descriptor is in it."""
    homad.config_file.unlink()
    os.mkfifo(homad.config_file)
    homad.send_signal(signal.SIGHUP)
    fds: list[int] = []

    def opened() -> bool:
        try:
            fds.append(os.open(homad.config_file, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    eventually(opened, 30)
    try:
        yield fds[0]
    finally:
        os.close(fds[0])


def test_reload__holds_up_nobody_however_long_it_reads() -> None:
    with two_hosts(RULES) as (a, b), serving(b), Client(a.homad.socket) as client:
        echo = b.start([sys.executable, STREAMS, b.homad.socket, "serve", b.v4, 5000, 1])
        assert echo.line() == "ready"
        client.attach()
        with endless_file(a.homad) as file:
            engine_job(client)
            assert client.ask(BIND, port=2000).error == 0
            assert client.ask(SEGMENT, size=1 << 20).error == 0
            first_request(a, b.v4)
            stream(a, b.v4)
            assert "configuration read again" not in a.homad.log()
            # Half of it changes nothing.
            os.write(file, (RULES + "[quota]\nattachments = 1\n").encode())
            with Client(a.homad.socket) as second:
                second.attach()
        a.homad.await_log("configuration read again")
        with Client(a.homad.socket) as second:
            assert second.ask(ATTACH).error < 0


def test_reload__is_broken_off_by_the_end() -> None:
    with one_host(arguments=["--udp-only"]) as host, endless_file(host.homad):
        assert host.homad.stop() == 0
        assert "stays as it was" in host.homad.log()


def test_admin__stopped_holds_up_no_application() -> None:
    with (
        two_hosts(RULES) as (a, b),
        serving(b),
        Client(a.homad.socket) as client,
        Raw(a.homad.monitor) as viewer,
    ):
        echo = b.start([sys.executable, STREAMS, b.homad.socket, "serve", b.v4, 5000, 1])
        assert echo.line() == "ready"
        client.attach()
        with stopped(a.homad, "homad-admin"):
            # Far more than one viewer is answered in a turn.
            viewer.socket.send(b'{"op": "snapshot"}\n' * 200)
            engine_job(client)
            assert client.ask(LISTEN, size=LISTEN_ON, port=2000).error == 0
            first_request(a, b.v4)
            stream(a, b.v4)
            assert not select.select([viewer.socket], [], [], 0)[0]
        for _ in range(200):
            assert viewer.line()["homad"]["attachments"] >= 1


def test_memory__stopped_holds_up_only_who_wants_some() -> None:
    with (
        two_hosts(RULES) as (a, b),
        serving(b),
        Client(a.homad.socket) as client,
        Client(a.homad.socket) as new,
    ):
        asking = a.start([RPCS, "ask", b.v4, 4000, 0, 100, 1])
        assert asking.line() == "asking"
        client.attach()
        with stopped(a.homad, "homad-memory"):
            new.send(request(ATTACH))
            engine_job(client)
            assert client.ask(BIND, port=2000).error == 0
            client.send(request(ROUTE, ip=bytes(10) + b"\xff\xff\x0a\x09\x00\x02"))
            answer = client.answer()
            assert answer and answer.error == 0
            with Raw(a.homad.monitor) as viewer:
                before = viewer.ask({"op": "snapshot"})["homad"]
                assert before["attachments"] == 3
            assert pending(new)
        answer = new.answer()
        assert answer and answer.error == 0
        asking.stop(signal.SIGKILL)


def test_routes__stopped_hold_up_only_who_asks_for_one() -> None:
    with (
        two_hosts(RULES) as (a, b),
        serving(b),
        Client(a.homad.socket) as client,
        Client(a.homad.socket) as other,
    ):
        first_request(a, b.v4)
        client.attach()
        with stopped(a.homad, "homad-routes"):
            client.send(request(ROUTE, ip=bytes(10) + b"\xff\xff\x0a\x09\x00\x63"))
            other.attach()
            engine_job(other)
            assert other.ask(BIND, port=2000).error == 0
            assert pending(client)
        answer = client.answer()
        assert answer and answer.op == ROUTE


def test_netlink__is_asked_by_no_round() -> None:
    """Neither end's device asks the kernel itself: not for those whom applications send to, nor for strangers."""
    with two_hosts(RULES) as (a, b), serving(b):
        echo = b.start([sys.executable, STREAMS, b.homad.socket, "serve", b.v4, 5000, 1])
        assert echo.line() == "ready"
        first_request(a, b.v4)
        stream(a, b.v4)
        asked = []
        for host in (a, b):
            with Raw(host.homad.monitor) as viewer:
                picture = viewer.ask({"op": "snapshot"})
            device = next(port["nic"] for port in picture["ports"] if port["backend"] == "afxdp")
            assert device["nic_tx_packets"] > 0
            assert device["nic_kernel_asked"] == 0
            asked.append(picture["threads"][0]["counters"]["ways_asked"])
        # The client's device had the answer before it had to ask, the server's had to.
        assert asked[1] > 0
