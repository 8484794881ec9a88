# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Real packets and the simulator, one beside the other, by tenths of the messages by size.

Both are round trips as they are, with nothing added or taken away. Slowdowns, of the lab and of the
simulator, are over the same times: that of the RPC alone on wires of the lab's rate, simulated,
without software. The lab's own idle times stand beside them and are no denominators: a port of HTB
lets a packet go at the beginning of its time on the wire, and a few at once after a pause, which
under load it hardly ever has.

No percentile is told of fewer than a thousand messages.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields

from lab.bench.histogram import Histogram
from lab.bench.results import SizeClass
from lab.cluster import lateness
from lab.net import tcp
from lab.sim.tails import LEAST, histogram

BUSY = 0.6  # of the processors: with more the machine may have been the limit
# TCP's least time-out, ns: of a thousand messages a few that wait for it decide P99 alone.
SLOW_NS = tcp.SLOW_RTO_MIN_MS * 1_000_000


@dataclass(frozen=True)
class Idle:
    """Round trips, ns, of messages of `sizes` bytes on the idle network; both increase together."""

    sizes: tuple[int, ...]
    times: tuple[float, ...]

    def at(self, size: float) -> float:
        """The time of a message of `size`: a line between two sizes, and on beyond the last."""
        if len(self.sizes) == 1:
            return self.times[0]
        right = min(max(bisect.bisect_right(self.sizes, size), 1), len(self.sizes) - 1)
        x0, x1 = self.sizes[right - 1], self.sizes[right]
        y0, y1 = self.times[right - 1], self.times[right]
        return y0 + (y1 - y0) * (max(size, self.sizes[0]) - x0) / (x1 - x0)


@dataclass(frozen=True)
class Row:
    """A tenth of the messages. Percentiles are ns, None of fewer than LEAST messages. In the middle
    of the sizes `wires` is the round trip alone on bare wires, `idle` that in the idle lab. `slow`
    is the share of messages that took longer than SLOW_NS, of "lab" and "sim"; None as above."""

    size_low: int
    size_high: int
    count: int
    sim_count: int
    wires: float
    idle: float
    lab: dict[str, float | None]
    sim: dict[str, float | None]
    slow: dict[str, float | None] = field(default_factory=dict)

    def ratio(self, percentile: str) -> float | None:
        """The simulator's over the lab's."""
        return divided(self.sim[percentile], self.lab[percentile])

    def slowdown(self, where: str, percentile: str) -> float | None:
        """`where` is "lab" or "sim"."""
        return divided(getattr(self, where)[percentile], self.wires)


@dataclass(frozen=True)
class Compared:
    """One point: its rows and what they rest on; `doubts` say why it does not count."""

    label: str
    transport: str
    workload: str
    load: float
    levels: int
    rows: list[Row]
    facts: dict[str, float] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """For a file; from_json() reads it."""
        rows = [
            {
                **asdict(row),
                "ratio_p50": row.ratio("p50"),
                "ratio_p99": row.ratio("p99"),
                "slowdown_p99": row.slowdown("lab", "p99"),
                "slowdown_p99_sim": row.slowdown("sim", "p99"),
            }
            for row in self.rows
        ]
        return {**asdict(self), "rows": rows, "counts": not self.doubts}


def from_json(document: dict) -> Compared:
    """What Compared.as_json() gave."""
    known = [one.name for one in fields(Row)]
    rows = [Row(**{name: row[name] for name in known if name in row}) for row in document["rows"]]
    named = {one.name: document[one.name] for one in fields(Compared)}
    return Compared(**{**named, "rows": rows})


def divided(one: float | None, other: float | None) -> float | None:
    """A ratio if both are known."""
    return None if one is None or not other else one / other


def middle(low: int, high: int) -> float:
    """Of sizes, on the scale on which workloads are spread: the geometric mean."""
    return (low * high) ** 0.5


def percentiles(shape: Histogram) -> dict[str, float | None]:
    """P50 and P99, ns."""
    return {
        name: shape.percentile(percent) if shape.count >= LEAST else None
        for name, percent in (("p50", 50.0), ("p99", 99.0))
    }


def slow_share(shape: Histogram) -> float | None:
    """The share of values above SLOW_NS; None of fewer than LEAST."""
    slow = sum(count for value, count in shape.counts.items() if value > SLOW_NS)
    return slow / shape.count if shape.count >= LEAST else None


def rows_of(lab: Sequence[SizeClass], sim: Sequence[dict], idle: Idle, wires: Idle) -> list[Row]:
    """The tenths of `lab` (all hosts together) beside homa-sim's `deciles`."""
    shapes = {int(row["decile"]): histogram(row.get("latency_ns")) for row in sim}
    found = []
    for number, one in enumerate(lab, start=1):
        size = middle(one.size_min, one.size_max)
        shape = shapes.get(number, Histogram())
        found.append(
            Row(
                one.size_min,
                one.size_max,
                one.latency.count,
                shape.count,
                wires.at(size),
                idle.at(size),
                percentiles(one.latency),
                percentiles(shape),
                {"lab": slow_share(one.latency), "sim": slow_share(shape)},
            )
        )
    return found


def doubts_of(facts: dict[str, float], note: str) -> list[str]:
    """Why a run does not count: the processors, the generator, the machine, or failed RPCs."""
    found = []
    if facts["busy"] > BUSY:
        found.append(f"the processors were {facts['busy']:.0%} busy, more than {BUSY:.0%}")
    found += lateness.doubts(facts)
    if facts["failed"]:
        found.append(f"{facts['failed']:,.0f} RPCs failed")
    if facts.get("uplink_drops"):
        found.append(f"hosts' own links dropped {facts['uplink_drops']:,.0f} packets")
    found += one_queue(facts)
    if facts.get("buffer_waits"):
        found.append(
            f"programs ran out of receive buffers: {facts['buffer_waits']:,.0f} messages waited"
        )
    if note:
        found.append(note)
    return found


def one_queue(facts: dict[str, float]) -> list[str]:
    """Why the kernel's TCP was slower than on hosts with a queue for each core, if it was."""
    if facts.get("host_queues") != 1:
        return []
    return ["all connections of a host share one queue (needs clang and libbpf-dev)"]


def short_ratio(
    points: Sequence[Compared], workload: str, transport: str, where: str
) -> float | None:
    """P99 of the shortest tenth: a transport's over Homa's; `where` is "lab" or "sim"."""

    def tail(name: str) -> float | None:
        for point in points:
            if (point.transport, point.workload) == (name, workload) and point.rows:
                return getattr(point.rows[0], where)["p99"]
        return None

    return divided(tail(transport), tail("homa"))
