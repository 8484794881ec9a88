# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What is measured: a client asks many hosts at the same moment, again and again at equal intervals.

Requests are short and responses long, so that the responses meet at the client's port of the switch.
They take a part of the client's link on the average, so each burst is over when the next begins,
unless packets were lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lab.cluster.points import HEADERS, MESSAGE_S, PACKET_S, SHARE, Point
from lab.cluster.setup import Setup, cores
from lab.coexist.shares import FRAME
from lab.errors import UsageError

NAME = "incast"
SENDERS = (1, 2, 4, 8, 16, 32, 64)
QUICK_SENDERS = (1, 8, 40)
MOST = 200  # senders; each is a namespace with a program in it
REQUEST, RESPONSE = 100, 10_000  # bytes
LOAD = 0.4  # of the client's link
CONTROL_FROM = 4  # requests open beyond which a client limits what answers may send unasked
LEAST_BURSTS = 30
WARMUP_S, WARMUP_BURSTS = 1.0, 10
IP_HEADER = 20
# Links are so many times slower than the processors need: a client needs some 25 µs for each request
# of a burst, which are due at one instant, and that shall be little of a response's time.
SLOWER = 3


@dataclass(frozen=True)
class Kind:
    """What carries the RPCs, its settings beside the usual, and its name."""

    transport: str
    settings: tuple[str, ...]
    title: str


KINDS = {
    "homa": Kind("homa", (f"incast_rpcs={CONTROL_FROM}",), "Homa, incast control"),
    "homa-free": Kind("homa", ("incast_rpcs=0",), "Homa without"),
    "tcp": Kind("tcp", (), "TCP"),
}


@dataclass(frozen=True)
class Cell:
    """`senders` hosts answer one, by KINDS[`kind`]."""

    kind: str
    senders: int

    @property
    def point(self) -> Point:
        """For what runs it."""
        kind = KINDS[self.kind]
        size = f"fixed:{REQUEST}"
        return Point(kind.transport, size, LOAD, label=kind.title, settings=kind.settings)

    def words(self) -> str:
        """For a line of progress."""
        return f"{self.senders} to 1, {KINDS[self.kind].title}"


def parse_senders(text: str) -> tuple[int, ...]:
    """Numbers in `text`, as in "1,8,64", in increasing order; or a UsageError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 1 <= int(part) <= MOST for part in parts):
        raise UsageError(f"--senders {text}: write numbers of hosts from 1 to {MOST}, like 1,8,64")
    return tuple(sorted({int(part) for part in parts}))


def packets(mtu: int) -> int:
    """Packets of a response."""
    return math.ceil(RESPONSE / (mtu - IP_HEADER - HEADERS))


def wire_bytes(mtu: int) -> int:
    """What a response takes on the wire."""
    return RESPONSE + packets(mtu) * (IP_HEADER + HEADERS + FRAME)


def rate(setup: Setup) -> tuple[int, float]:
    """Bits per second of all links, and the dilation."""
    rps = LOAD * setup.link_bps / 8 / wire_bytes(setup.mtu)
    effort = rps * (2 * MESSAGE_S + (1 + packets(setup.mtu)) * PACKET_S)
    return setup.diluted(setup.dilate or effort / (SHARE * cores()) * SLOWER)


@dataclass(frozen=True)
class Plan:
    """When bursts are, seconds: one each `period`, the first after one period; `count` of them are
    measured from `warmup` on."""

    senders: int
    period: float
    warmup: float
    count: int

    @property
    def window(self) -> float:
        """Seconds that are measured."""
        return self.count * self.period

    def arrivals(self) -> Iterator[str]:
        """Lines for homa-sim: host 0 asks the others."""
        last = math.floor((self.warmup + self.window) / self.period)
        for burst in range(1, last + 1):
            at = int(burst * self.period * 1e9)
            for sender in range(1, self.senders + 1):
                yield f"{at},0,{sender},{REQUEST}"


def plan(setup: Setup, senders: int, link_bps: int) -> Plan:
    """The bursts of a run; its window begins and ends between two of them."""
    period = senders * wire_bytes(setup.mtu) * 8 / link_bps / LOAD
    most = max(1, int(setup.longest_s / period))
    count = min(most, max(LEAST_BURSTS, math.ceil(setup.messages / senders)))
    before = max(WARMUP_BURSTS, math.ceil(WARMUP_S / period))
    return Plan(senders, period, (before + 0.5) * period, count)


def least_s(setup: Setup, senders: int, link_bps: int) -> float:
    """Seconds that the responses of a burst take on the client's link, one after the other."""
    return senders * wire_bytes(setup.mtu) * 8 / link_bps
