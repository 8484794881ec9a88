# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Long messages over UDP: taken where both ends have it, and not where it must not be."""

from __future__ import annotations

import pytest
from homad import PATIENT, Host, needs_homad, needs_root, two_hosts
from netns import eventually
from ops_tools import ask, serving, snapshot

pytestmark = [needs_homad, needs_root]

LONG, SHORT = 500_000, 1000


def sent_over_udp(host: Host) -> int:
    """Requests of `host` that went over UDP because they are long."""
    return sum(thread["counters"]["bulk"] for thread in snapshot(host.homad)["threads"])


def of_udp(host: Host, counter: str) -> int:
    """A counter of the UDP port of `host`."""
    (port,) = (p for p in snapshot(host.homad)["ports"] if p["name"] == "udp")
    return int(port["nic"][counter])


def taken(a: Host, b: Host, before: int = 0) -> bool:
    """Send one long message; has the way over UDP been taken by now?"""
    ask(a, b, 1, LONG, 1)
    return sent_over_udp(a) > before


def test_long_messages__go_over_udp() -> None:
    with two_hosts(PATIENT) as (a, b), serving(b):
        eventually(lambda: taken(a, b))
        before, bytes_before = sent_over_udp(a), of_udp(a, "nic_tx_bytes")
        ask(a, b, 20, LONG)
        assert sent_over_udp(a) - before == 20
        assert of_udp(a, "nic_tx_bytes") - bytes_before > 20 * LONG
        assert of_udp(b, "nic_tx_bytes") > 20 * LONG, "their responses go with them"
        for host in (a, b):
            assert of_udp(host, "nic_tx_gso") > 0 and of_udp(host, "nic_rx_gro") > 0, (
                "packets joined"
            )


def test_short_messages__stay_native() -> None:
    with two_hosts(PATIENT) as (a, b), serving(b):
        eventually(lambda: taken(a, b))
        before = sent_over_udp(a)
        ask(a, b, 100, SHORT)
        assert sent_over_udp(a) == before


@pytest.mark.parametrize("network", [{"bulk": "off"}, {"udp": False}], ids=["off", "no UDP"])
def test_not_wanted__stays_native(network: dict[str, object]) -> None:
    with two_hosts({**PATIENT, "network": network}) as (a, b), serving(b):
        ask(a, b, 30, LONG)
        assert sent_over_udp(a) == 0


def test_peer_without_udp__stays_native() -> None:
    with two_hosts(PATIENT) as (a, b):
        b.homad.stop()
        b.homad.configure({**PATIENT, "network": {"udp": False}})
        b.homad.start()
        with serving(b):
            ask(a, b, 30, LONG)
        assert sent_over_udp(a) == 0


# Holds UDP port 54321, as nobody, and claims to be a homad to whomever it hears of; tells what it got.
SQUATTER = """
import os, socket, struct, sys, threading, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 54321))
os.setuid(65534)
victim = (sys.argv[1], 54321)
def packet(kind, sender_id, sport, dport, size):
    head = struct.pack("!HHI3xBB7xQ", sport, dport, 0, kind, 0x50, sender_id)
    return head + bytes(size - len(head))
def answers(sender_id, sport, dport):
    return [packet(0x18, sender_id, sport, dport, 80), packet(0x13, sender_id, sport, dport, 28)]
def claim():
    while True:
        for i in range(64):
            for p in answers(i, 0x8000, 1) + answers(i, 1, 0x8000):
                s.sendto(p, victim)
        time.sleep(0.01)
threading.Thread(target=claim, daemon=True).start()
print("ready", flush=True)
while True:
    data, _ = s.recvfrom(65536)
    print(len(data), flush=True)
    if len(data) >= 28:
        sport, dport = struct.unpack("!HH", data[:4])
        for p in answers(struct.unpack("!Q", data[20:28])[0] ^ 1, dport, sport):
            s.sendto(p, victim)
"""


def test_squatter_on_the_port__gets_nothing() -> None:
    """Whoever has the peer's port, but not the native protocol, is no homad."""
    with two_hosts(PATIENT) as (a, b):
        b.homad.stop()
        b.homad.configure({**PATIENT, "network": {"udp": False}})
        squatter = b.space.start(["/usr/bin/python3", "-c", SQUATTER, a.v4])
        assert squatter.line() == "ready"
        b.homad.start()
        with serving(b):
            for _ in range(4):
                ask(a, b, 20, LONG)
        assert sent_over_udp(a) == 0
        engine = snapshot(a.homad)["engine"]
        assert engine["drop_unknown_rpc"] + engine["drop_id"] > 0, "it has claimed nothing"
        _, out, err = squatter.stop()
        assert (out, err) == ("", ""), "it has heard something"


def test_port_taken__homad_does_not_start() -> None:
    with two_hosts(PATIENT) as (a, b):
        b.homad.stop()
        squatter = b.space.start(["/usr/bin/python3", "-c", SQUATTER, a.v4])
        assert squatter.line() == "ready"
        b.homad.start(wait=False)
        assert b.homad.wait() == 1
        assert "UDP port 54321 is taken by another process" in b.homad.log()
        assert "network.udp = false" in b.homad.log()
        squatter.stop()
