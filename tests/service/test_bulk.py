# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Long messages over UDP: taken where both ends have it, and not where it must not be."""

from __future__ import annotations

import pytest
from homad import Host, Settings, needs_homad, needs_root, two_hosts
from netns import eventually
from ops_tools import ask, serving, snapshot

pytestmark = [needs_homad, needs_root]

LONG, SHORT = 500_000, 1000
PATIENT: Settings = {"protocol": {"restart_guard_us": 1, "timeout_us": 10_000_000}}


def sent_over_udp(host: Host) -> int:
    """Requests of `host` that went over UDP because they are long."""
    return sum(thread["counters"]["bulk"] for thread in snapshot(host.homad)["threads"])


def udp_bytes(host: Host) -> int:
    """Bytes that the UDP port of `host` has sent."""
    (port,) = (p for p in snapshot(host.homad)["ports"] if p["name"] == "udp")
    return int(port["nic"]["nic_tx_bytes"])


def taken(a: Host, b: Host, before: int = 0) -> bool:
    """Send one long message; has the way over UDP been taken by now?"""
    ask(a, b, 1, LONG, 1)
    return sent_over_udp(a) > before


def test_long_messages__go_over_udp() -> None:
    with two_hosts(PATIENT) as (a, b), serving(b):
        eventually(lambda: taken(a, b))
        before, bytes_before = sent_over_udp(a), udp_bytes(a)
        ask(a, b, 20, LONG)
        assert sent_over_udp(a) - before == 20
        assert udp_bytes(a) - bytes_before > 20 * LONG
        assert udp_bytes(b) > 20 * LONG, "their responses go with them"


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
