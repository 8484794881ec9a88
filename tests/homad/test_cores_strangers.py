# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP in a homad of several threads under attack: strangers flood the ports of two instances and guess at
connections, and programs and homad itself are killed while instances move between threads."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from homad import Host, Process, needs_homad, needs_root
from netns import eventually
from ops_tools import snapshot
from test_cores import dedicated
from test_cores_tcp import (
    BYTES,
    CLIENT,
    EXCHANGE,
    RESTLESS,
    RULE,
    STREAMS,
    apps_of,
    by_homad,
    by_kernel,
    of_threads,
)
from test_tcp_many import PATIENT

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core"),
]

STRANGER = str(Path(__file__).parent / "stranger.py")
PORTS = (5000, 5001)
KINDS = "syn,handshake,closed,inject,icmp"
# Before a release (./homa test --long) there are more packets and more turns.
LONG = os.environ.get("HOMA_TEST_LONG") == "1"
COUNT = 20_000 if LONG else 4_000
TURNS = 5 if LONG else 2
KILLS = int(os.environ.get("KILLS") or (8 if LONG else 4))
# Has connections to the ports of its arguments, says their own ports, and exchanges bytes over them until it is told
# to end by SIGUSR1: all that comes back is right, and nothing takes longer than a minute.
GOING = (
    EXCHANGE
    + """
import signal
over = []
signal.signal(signal.SIGUSR1, lambda *_: over.append(1))
to, ports = sys.argv[1], list(map(int, sys.argv[2:]))
ends = [socket.create_connection((to, port), timeout=60) for port in ports for _ in range(4)]
print(",".join(str(end.getsockname()[1]) for end in ends), flush=True)
turns = 0
while not over:
    exchange(ends, turns, 100)
    turns += 1
for end in ends:
    end.close()
print("right", turns, flush=True)
"""
)
# Does the same, and takes the peer for dead sooner: when homad was killed, who only waits for an answer hears nothing.
HASTY = GOING.replace("timeout=60", "timeout=20")


@contextmanager
def served(
    threads: dict[str, object], **tables: dict[str, object]
) -> Iterator[tuple[Host, Host, list[Process]]]:
    """Two servers at a host of two threads, each at home at one; strangers' addresses are behind the other host."""
    with dedicated(threads, tcp_rule=[RULE], **tables) as (a, b):
        a.space.ip("route", "add", "198.18.0.0/15", "via", b.v4)
        servers = [a.start(by_homad(sys.executable, "-c", PATIENT, port)) for port in PORTS]
        for one in servers:
            assert one.line() == "ready"
        yield a, b, servers
        for one in servers:
            one.stop()


def attack(
    a: Host, b: Host, kinds: str, peers: str = "", seed: int = 1, ports: str = "5000,5001"
) -> Process:
    words = [sys.executable, STRANGER, seed, kinds, COUNT, a.v4, b.v4, ports]
    stranger = b.space.start([str(w) for w in (*words, *([peers] if peers else []))])
    assert stranger.line(60) == "going"
    return stranger


def tcp(host: Host) -> dict:
    return snapshot(host.homad)["tcp"]


def is_quiet(host: Host, connections: int = 0) -> None:
    """What strangers left goes away by itself."""
    eventually(lambda: tcp(host)["connections"] <= connections, 180)


@pytest.mark.parametrize("threads", [{"scale": False}, RESTLESS], ids=["stay", "move"])
def test_strangers__do_no_harm(threads: dict[str, object]) -> None:
    """Connections to both instances go on, new ones are opened, and homad's memory does not grow."""
    with served(threads) as (a, b, _):
        going = [b.start(by_kernel(sys.executable, "-c", GOING, a.v4, *PORTS)),
                 a.start(by_homad(sys.executable, "-c", GOING, a.v4, *PORTS))]  # fmt: skip
        peers = going[0].line(60)
        assert going[1].line(60)
        attack(a, b, KINDS, peers, seed=2).wait(240)
        before = a.homad.rss()
        stranger = attack(a, b, KINDS, peers)
        for turn in range(3):
            done = b.run(
                by_kernel(sys.executable, "-c", CLIENT, a.v4, PORTS[turn % 2], 4, 20_000),
                timeout=100,
            )
            assert done.stdout.strip() == "right", done
        said = stranger.wait(240)
        assert said[0] == 0 and "not sent" not in said[1], said
        print(
            said[1].strip(),
            "lost",
            of_threads(a, "tcp_handed_lost"),
            {k: v for k, v in tcp(a)["host"].items() if v},
        )
        print({k: v for k, v in tcp(a).items() if isinstance(v, int)})
        for one in going:
            one.send_signal(signal.SIGUSR1)
            assert (one.line(100) or "").startswith("right"), one.wait(10)
        assert a.homad.rss() < before + 4_000, (before, a.homad.rss())
        # Half-open connections end after a minute, when their SYN-ACKs have all been sent.
        if LONG or threads is not RESTLESS:
            is_quiet(a)


@pytest.mark.parametrize("back", [by_homad, by_kernel])
def test_homad__is_killed_while_instances_move(back: object) -> None:
    """Programs hear of it, and those of the next homad are served."""
    with dedicated(RESTLESS, tcp_rule=[RULE]) as (a, b):
        chance = random.Random(1)
        for turn in range(TURNS):
            servers = [a.start(by_homad(sys.executable, "-c", PATIENT, port)) for port in PORTS]
            for one in servers:
                assert one.line() == "ready", turn
            clients = [b.start(back(sys.executable, "-c", HASTY, a.v4, port)) for port in PORTS]  # type: ignore[operator]
            clients.append(a.start(by_homad(sys.executable, "-c", HASTY, a.v4, *PORTS)))
            for one in clients:
                assert one.line(60), turn
            time.sleep(chance.random() / 5)
            a.homad.kill()
            a.homad.start()
            for one in clients:
                assert one.wait(100)[0] != 0, turn
            for one in servers:
                one.stop()
        servers = [a.start(by_homad(sys.executable, "-c", PATIENT, 5000))]
        assert servers[0].line() == "ready"
        done = b.run(back(sys.executable, "-c", CLIENT, a.v4, 5000, STREAMS, BYTES), timeout=100)  # type: ignore[operator]
        assert done.stdout.strip() == "right", done
        servers[0].stop()


def test_programs__are_killed_while_instances_move() -> None:
    """At any moment of their lives, also while homad gets memory for them. Nothing of them stays, and others go on."""
    with dedicated(RESTLESS, tcp_rule=[RULE]) as (a, b):
        stays = a.start(by_homad(sys.executable, "-c", PATIENT, 5000))
        assert stays.line() == "ready"
        going = b.start(by_kernel(sys.executable, "-c", GOING, a.v4, 5000))
        assert going.line(60)
        before = a.homad.resources()
        chance = random.Random(2)
        for turn in range(KILLS):
            dies = a.start(by_homad(sys.executable, "-c", PATIENT, 5001))
            within = a.start(by_homad(sys.executable, "-c", GOING, a.v4, 5000, 5000))
            if chance.random() < 0.7:
                assert dies.line(60) == "ready", turn
                client = b.start(by_kernel(sys.executable, "-c", GOING, a.v4, 5001))
                assert client.line(60) and within.line(60)
            time.sleep(chance.random() / 10)
            for one in (dies, within):
                one.send_signal(signal.SIGKILL)
                one.wait(60)
        going.send_signal(signal.SIGUSR1)
        assert (going.line(100) or "").startswith("right"), going.wait(10)
        eventually(lambda: len(apps_of(a)) == 1, 60)
        a.homad.await_resources(before, 60)
        is_quiet(a)
        assert a.homad.log().count("fast path changed its cores") > 4
        stays.stop()
