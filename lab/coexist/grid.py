# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which cells are measured: RPCs of a workload at one load beside streams at another.

Loads are payload over the link's rate, in each direction of each host's link. The grid is that of
the talk (published.toml, snia). Beside its cells there are those without streams, for the latency,
and those without RPCs, for the throughput, that the others are compared with. A cell that asks for
more than the links have is not measured; the talk has two rows of such cells.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from lab.cluster.points import (
    HEADERS, PACKET_S, SHARE, Point, effort_of, mean_bytes,
)  # fmt: skip
from lab.cluster.setup import Setup, cores
from lab.coexist.shares import FRAME
from lab.errors import UsageError
from lab.sim.published import published

WORKLOADS = ("w1", "w2", "w3", "w4", "w5")
LOADS = (10, 30, 40, 50, 60, 70)  # percent, of RPCs and of streams
QUICK_WORKLOADS, QUICK_RPCS, QUICK_STREAMS = ("w4",), (30,), (10, 40)
BY_HOMAD = 2  # times the processors that programs and the kernel's TCP need for the same
MOST = 100  # percent that RPCs and streams ask for together
IP_HEADER = 20
FULL = 0.95  # of the wire; RPCs that alone take more have a queue that grows for ever


@dataclass(frozen=True)
class Kind:
    """What carries the RPCs: the transport, how many priorities it uses, and its names. `shared`: a
    homad in each host carries RPCs and streams and shares the link between them; else streams are
    the kernel's."""

    transport: str
    levels: int
    title: str
    brief: str
    shared: bool = False


KINDS = {
    "homa": Kind("homa", 8, "Homa, 8 priorities", "Homa 8"),
    "homa-flat": Kind("homa", 1, "Homa, 1 priority", "Homa 1"),
    "homa-shared": Kind("homa", 8, "Homa and streams by homad", "homad", shared=True),
    "tcp": Kind("tcp", 8, "TCP RPCs", "TCP"),
}


@dataclass(frozen=True)
class Cell:
    """RPCs of `workload`, carried by KINDS[`kind`], asking for `rpc` percent of each link beside
    streams that ask for `stream` percent. One of both is 0 in what cells are compared with; without
    RPCs `kind` is "" where the kernel carries the streams."""

    workload: str
    kind: str
    rpc: int
    stream: int

    @property
    def point(self) -> Point:
        """The RPCs, for what runs them."""
        kind = KINDS[self.kind]
        return Point(kind.transport, self.workload, self.rpc / 100, kind.levels, kind.title)

    @property
    def shared(self) -> bool:
        """Whether homad carries the streams."""
        return self.kind in KINDS and KINDS[self.kind].shared

    @property
    def published(self) -> bool:
        """Whether the talk says that it measured such RPCs beside such streams."""
        return self.workload in measured_there(self.rpc, self.stream)

    def words(self) -> str:
        """For a line of progress."""
        streams = f"streams {self.stream} %" if self.stream else "no streams"
        if not self.rpc:
            by = " by homad" if self.shared else ""
            return f"{self.workload.upper()}'s network: {streams} alone{by}"
        title = KINDS[self.kind].title
        return f"{self.workload.upper()} {self.rpc} %, {title}: {streams}"


def alone(cell: Cell) -> Cell:
    """The streams of `cell` without its RPCs."""
    return Cell(cell.workload, cell.kind if cell.shared else "", 0, cell.stream)


@functools.cache
def measured_there(rpc: int, stream: int) -> tuple[str, ...]:
    """The workloads that the talk measured at these loads, percent."""
    known = published()["snia"]
    row = known["matrix"].get(str(rpc))
    if row is None or stream not in known["streams"]:
        return ()
    return tuple(row[known["streams"].index(stream)].split())


def plan(
    workloads: tuple[str, ...], rpcs: tuple[int, ...], streams: tuple[int, ...],
    kinds: tuple[str, ...], all_of_them: bool,
) -> list[Cell]:  # fmt: skip
    """The cells, each after those that it is compared with, workload by workload. Without
    `all_of_them` only those that the talk measured."""
    found: list[Cell] = []
    for w in workloads:
        pairs = [
            (rpc, stream)
            for rpc in rpcs
            for stream in streams
            if rpc + stream <= MOST and (all_of_them or w in measured_there(rpc, stream))
        ]
        some: list[Cell] = []
        for rpc in dict.fromkeys(rpc for rpc, _ in pairs):
            for kind in kinds:
                beside = [stream for r, stream in pairs if r == rpc]
                some += [Cell(w, kind, rpc, stream) for stream in (0, *beside)]
        found += dict.fromkeys(alone(cell) for cell in some if cell.stream)
        found += some
    return found


def parse_loads(text: str, option: str) -> tuple[int, ...]:
    """Percents in `text`, as in "10,40", in increasing order; or a UsageError."""
    parts = [part.strip().removesuffix("%").strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 1 <= int(part) <= 90 for part in parts):
        raise UsageError(f"{option} {text}: write percents of the link from 1 to 90, like 10,40")
    return tuple(sorted({int(part) for part in parts}))


def effort(cell: Cell, setup: Setup, link_bps: float) -> float:
    """Processors that the cell needs, by the figures of lab/cluster/points.py."""
    packets = setup.hosts * cell.stream / 100 * link_bps / 8 / (setup.mtu - HEADERS)
    rpcs = effort_of(cell.point, setup.hosts, link_bps, setup.mtu) if cell.rpc else 0.0
    return (rpcs + packets * PACKET_S) * (BY_HOMAD if cell.shared else 1)


def rate(cells: list[Cell], setup: Setup) -> tuple[int, float]:
    """Bits per second of the links that all of `cells` have, and the dilation."""
    most = max(effort(cell, setup, setup.link_bps) for cell in cells) / (SHARE * cores())
    return setup.diluted(setup.dilate or most)


def wire_share(point: Point, mtu: int) -> float:
    """The share of a link that RPCs take on the wire, with the headers of their packets."""
    mean = mean_bytes(point.workload)
    packets = 1 + mean / (mtu - HEADERS - IP_HEADER)
    return point.load * (mean + packets * (FRAME + IP_HEADER + HEADERS)) / mean


def that_fit(cells: list[Cell], mtu: int) -> tuple[list[Cell], list[Cell]]:
    """`cells` without those whose RPCs alone fill the links, and these."""
    full = [cell for cell in cells if cell.rpc and wire_share(cell.point, mtu) > FULL]
    return [cell for cell in cells if cell not in full], full
