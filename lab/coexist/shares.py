# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What streams lose to RPCs, and what they must lose because a link carries no more than it does.

Shares are of a link's rate. Streams *lose* 1 - (what they carry beside RPCs) / (what they carry
alone). RPCs leave them the link without what the RPCs' packets take on the wire; of that a part is
data, the rest are TCP's headers. If the streams ask for more, they *must* lose the difference,
whoever carries the RPCs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.bench.histogram import Histogram, merge
from lab.bench.results import SLOWDOWN_SCALE, SizeClass
from lab.sim.tails import LEAST, histogram

FRAME = 38  # bytes of a packet on a cable beside those of the MTU
TCP_HEADERS = 52  # IP, TCP and its time stamps
SHORT_TENTHS = 2  # short: the smallest 20 % of the messages


def data_share(mtu: int) -> float:
    """Of a link full of TCP's packets, the share that is data."""
    return (mtu - TCP_HEADERS) / (mtu + FRAME)


def lost(carried: float | None, alone: float | None) -> float | None:
    """The share of their throughput that streams lose; below 0 if they carry more than alone."""
    return None if carried is None or not alone else 1 - carried / alone


def unavoidable(asked: float, rpc_wire: float, mtu: int) -> float:
    """The share of `asked` that streams must lose beside RPCs that take `rpc_wire` of the wire."""
    room = max(0.0, 1 - rpc_wire) * data_share(mtu)
    return max(0.0, 1 - room / asked) if asked else 0.0


@dataclass(frozen=True)
class Times:
    """Round trips of `count` messages of `size_low` to `size_high` bytes: ns, and slowdowns over
    the time alone on wires; None of fewer than LEAST messages."""

    size_low: int
    size_high: int
    count: int
    p50_ns: float | None
    p99_ns: float | None
    slowdown_p50: float | None
    slowdown_p99: float | None


def _percentile(shape: Histogram, percent: float, scale: float = 1.0) -> float | None:
    value = shape.percentile(percent) if shape.count >= LEAST else None
    return None if value is None else value / scale


def times(classes: Sequence[SizeClass]) -> Times:
    """Of the messages of all `classes` together."""
    latency = merge(one.latency for one in classes)
    slowdown = merge(one.slowdown for one in classes)
    return Times(
        min(one.size_min for one in classes),
        max(one.size_max for one in classes),
        latency.count,
        _percentile(latency, 50),
        _percentile(latency, 99),
        _percentile(slowdown, 50, SLOWDOWN_SCALE),
        _percentile(slowdown, 99, SLOWDOWN_SCALE),
    )


def simulated(deciles: Sequence[dict]) -> Times:
    """Of the smallest 20 % in homa-sim's `deciles`, without slowdowns."""
    rows = list(deciles)[:SHORT_TENTHS]
    shape = merge(histogram(row.get("latency_ns")) for row in rows)
    return Times(
        min((int(row["size_min"]) for row in rows), default=0),
        max((int(row["size_max"]) for row in rows), default=0),
        shape.count,
        _percentile(shape, 50),
        _percentile(shape, 99),
        None,
        None,
    )


def short(tenths: Sequence[SizeClass]) -> Times:
    """The smallest 20 % of the messages."""
    return times(tenths[:SHORT_TENTHS])
