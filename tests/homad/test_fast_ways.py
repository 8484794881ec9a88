# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad's fast ways are taken where they should be, and only there; counters say so. The table of them
is in docs/testing.md; the way over UDP has test_bulk.py."""

from __future__ import annotations

import sys
import time

from homad import PATIENT, PROGRAMS, Host, Settings, needs_homad, needs_root, one_host, two_hosts
from netns import eventually
from ops_tools import ask, serving, snapshot

pytestmark = [needs_homad, needs_root]

RPCS, SHORT, LONG = 50, 100, 100_000
# Two threads that spin on the machine's cores: slow, but nothing may time out.
TWO_THREADS: Settings = {
    "threads": {"mode": "dedicated", "cores": [0, 1], "scale": False},
    "protocol": {"timeout_us": 60_000_000, "tombstone_ms": 60_000},
}


def count(host: Host, name: str) -> int:
    """A counter of the fast path, over its threads."""
    return sum(int(t["counters"][name]) for t in snapshot(host.homad)["threads"])


def test_direct__within_one_host_without_packets() -> None:
    with one_host(PATIENT) as host, serving(host):
        ask(host, host, RPCS, SHORT)
        assert count(host, "direct") == RPCS
        assert count(host, "local_packets") == 0


def test_direct__long_messages_go_by_packets() -> None:
    with one_host(PATIENT) as host, serving(host):
        ask(host, host, RPCS, LONG)
        assert count(host, "direct") == 0
        assert count(host, "local_packets") >= RPCS


def test_direct__not_if_switched_off() -> None:
    with one_host({**PATIENT, "network": {"direct": False}}) as host, serving(host):
        ask(host, host, RPCS, SHORT)
        assert count(host, "direct") == 0
        assert count(host, "local_packets") >= RPCS


def test_direct__not_between_hosts() -> None:
    with two_hosts() as (a, b), serving(b):
        ask(a, b, RPCS, SHORT)
        for host in (a, b):
            assert count(host, "direct") == count(host, "local_packets") == 0


def test_direct__between_two_threads() -> None:
    """A client and two servers: whatever thread the client has, one of the servers has the other."""
    with one_host(TWO_THREADS) as host, serving(host), serving(host, 4001):
        ask(host, host, RPCS, SHORT)
        eventually(lambda: len(snapshot(host.homad)["apps"]) == 2)
        ask(host, host, RPCS, SHORT, port=4001)
        assert len(snapshot(host.homad)["threads"]) == 2
        assert count(host, "direct") == 2 * RPCS
        assert count(host, "direct_across") == RPCS
        assert count(host, "local_packets") == 0


def control(host: Host) -> int:
    """Control packets that a host has sent. While one waits for the end of a round, a message waits behind it
    and leaves the usual way. How many there are depends on how long programs let each other wait."""
    sent = snapshot(host.homad)["engine"]
    kinds = ("tx_resend", "tx_busy", "tx_need_ack", "tx_ack", "tx_unknown")
    return sum(int(sent[kind]) for kind in kinds)


def test_whole__messages_of_one_packet() -> None:
    """One request at a time, so that only control packets may wait before it. The first one takes the usual
    way: an application has to be told of something before it is known that there is room for a batch."""
    with two_hosts(PATIENT) as (a, b), serving(b):
        ask(a, b, RPCS, SHORT, at_once=1)
        for host in (a, b):
            assert count(host, "whole_in") >= RPCS - 1
            assert count(host, "whole_out") >= RPCS - 1 - control(host)


def test_whole__not_long_ones() -> None:
    with two_hosts(PATIENT) as (a, b), serving(b):
        ask(a, b, RPCS, LONG)
        for host in (a, b):
            assert count(host, "whole_in") == count(host, "whole_out") == 0


def test_whole__not_with_two_threads() -> None:
    with two_hosts(TWO_THREADS) as (a, b), serving(b):
        ask(a, b, RPCS, SHORT)
        for host in (a, b):
            assert count(host, "whole_in") == count(host, "whole_out") == 0


def of_port(host: Host, backend: str, counter: str) -> int:
    """A counter of the ports of a backend."""
    ports = [p for p in snapshot(host.homad)["ports"] if p["backend"] == backend]
    assert ports
    return sum(int(port["nic"][counter]) for port in ports)


def test_watch__udp_is_looked_into_when_a_datagram_has_come() -> None:
    """Beside AF_XDP the kernel counts datagrams in memory, and nobody asks it for them in vain."""
    with two_hosts(PATIENT) as (a, b), serving(b):
        before, began = of_port(a, "udp", "nic_syscalls"), time.monotonic()
        ask(a, b, 40 * RPCS, SHORT, at_once=1)
        looks = of_port(a, "udp", "nic_syscalls") - before
        # Once in 2 ms for errors.
        assert looks <= (time.monotonic() - began) * 500 + 20
        for host in (a, b):
            assert count(host, "udp_news") == 0
        ask(a, b, RPCS, LONG)
        assert of_port(b, "udp", "nic_rx_packets") > 0
        for host in (a, b):
            assert count(host, "udp_news") > 0


def test_sleep__afxdp_stays_ready_for_the_next_one() -> None:
    """A thread that sleeps again soon makes no system calls to prepare for it."""
    with two_hosts(PATIENT) as (a, b), serving(b):
        ask(a, b, 1)
        calls = of_port(b, "afxdp", "nic_syscalls") - of_port(b, "afxdp", "nic_tx_packets")
        sleeps = count(b, "blocks")
        for _ in range(20):
            ask(a, b, 1)
        calls = of_port(b, "afxdp", "nic_syscalls") - of_port(b, "afxdp", "nic_tx_packets") - calls
        # One look at the slow side in a millisecond; to go to sleep and to wake took four.
        assert calls < 2 * (count(b, "blocks") - sleeps)


STRANGER = """
import socket, struct, sys, time
quoted = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 84, 1, 0, 64, 146, 0, *map(socket.inet_aton, sys.argv[1:3]))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
body = struct.pack("!BBHI", 3, 1, 0, 0) + quoted + bytes(64)
words = struct.unpack(f"!{len(body) // 2}H", body)
total = sum(words)
total = (total & 0xffff) + (total >> 16)
body = body[:2] + struct.pack("!H", 0xffff & ~total) + body[4:]
for _ in range(int(sys.argv[3])):
    raw.sendto(body, (sys.argv[1], 0))
    time.sleep(0.001)
"""


def test_sleep__that_a_stranger_ends_is_one_again_at_once() -> None:
    """ICMP errors about packets of Homa wake the thread. It takes them and sleeps."""
    errors = 1000
    with two_hosts(PATIENT) as (a, b):
        rounds, sleeps = count(a, "rounds"), count(a, "blocks")
        b.run([sys.executable, "-c", STRANGER, a.v4, b.v4, str(errors)])
        # When only a clock of 4 ms had it look at them, there were 1,500 rounds for an error.
        assert 0 < count(a, "blocks") - sleeps < 3 * errors
        assert count(a, "rounds") - rounds < 50 * errors


def test_yields__of_a_program_that_only_asks() -> None:
    """Who asks again and again without waiting would keep homad from the processor that it waits for."""
    with two_hosts() as (a, b), serving(b):
        a.run([PROGRAMS / "poller", f"{b.v4}:4000"])
