# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What is measured for a figure of the ATC'21 paper in a dilated lab: points, and how slow it must be.

A *point* is one transport with one workload at one load and with so many priorities. The load is
the paper's: payload in each direction of a host's link. Sizes are cut at 1 MB, as in the paper.

The machine that carries all hosts must not be the limit. So unless the dilation is given it follows
from what an RPC and a packet cost here, in processor time. These two figures decide nothing but
how slow the network is: whether the processors were the limit is measured in each run.
"""

from __future__ import annotations

import functools
import json
import subprocess
from dataclasses import dataclass

from lab.errors import LabError, UsageError
from lab.paths import homa_bench
from lab.sim.published import published

# Processor time of a message, one end, and of one packet through both of its links; seconds.
MESSAGE_S, PACKET_S = 20e-6, 50e-6
SHARE = 0.45  # of the processors, what a network may need by these figures
HEADERS = 60  # bytes of a DATA packet that are not the message's, beside IP's
SHARES = (1.0, 0.5, 0.1)  # of the paper's load, Figure 6
LEVELS = (1, 2, 4, 8)  # Figure 5
TITLES = {
    "homa": "Homa",
    "tcp": "TCP stream",
    "tcp-pool": "TCP pool",
    "tcp-bbr": "TCP BBR",
    "tcp-homad": "TCP by homad",
}


@dataclass(frozen=True)
class Point:
    """`load` is payload over the link's rate in each direction, `label` the name of its curve,
    `settings` the engine's beside those that all points have, "name=value"."""

    transport: str
    workload: str
    load: float
    levels: int = 8
    label: str = ""
    settings: tuple[str, ...] = ()

    @property
    def spoken(self) -> str:
        """The transport as homa-bench knows it: who carries TCP, and with which congestion control, is
        not its business."""
        return "tcp" if self.transport in ("tcp-bbr", "tcp-homad") else self.transport

    @property
    def congestion(self) -> str:
        """The congestion control of TCP, the kernel's or homad's."""
        return "bbr" if self.transport == "tcp-bbr" else "cubic"

    @property
    def by_homad(self) -> bool:
        """Whether a homad on each host carries TCP, for programs as they are."""
        return self.transport == "tcp-homad"

    @property
    def by_kernel(self) -> bool:
        """Whether the kernel's TCP takes part."""
        return self.transport != "homa" and not self.by_homad

    @property
    def simulated(self) -> bool:
        """Whether homa-sim has it: of TCP it has the kernel's with CUBIC."""
        return self.transport not in ("tcp-bbr", "tcp-homad")


@dataclass(frozen=True)
class Figure:
    """A figure: its `title`, the workloads that it has, and what varies."""

    title: str
    workloads: tuple[str, ...]
    quick: tuple[str, ...]
    varies: str  # "transport", "levels" or "load"


FIGURES = {
    "fig3": Figure(
        "Slowdown of RPCs by message size (ATC'21, Figure 3)",
        ("w2", "w3", "w4", "w5"),
        ("w2", "w3", "w4", "w5"),
        "transport",
    ),
    "fig5": Figure("Number of priorities (ATC'21, Figure 5)", ("w5",), ("w5",), "levels"),
    "fig6": Figure("Less load (ATC'21, Figure 6)", ("w4",), ("w4",), "load"),
}


def paper_load(workload: str) -> float:
    """The paper's load of a workload as a share of its links."""
    known = published()["atc"]
    return round(known["load"]["gbps"][workload] / known["setup"]["link_gbps"], 6)


def points_of(name: str, workloads: tuple[str, ...], transports: tuple[str, ...]) -> list[Point]:
    """All points of figure `name`, workload by workload."""
    found = []
    for w in workloads:
        load = paper_load(w)
        if FIGURES[name].varies == "levels":
            for levels in LEVELS:
                plural = "level" if levels == 1 else "levels"
                found.append(Point("homa", w, load, levels, f"Homa, {levels} {plural}"))
            rest = [t for t in transports if t != "homa"]
            found += [Point(t, w, load, label=TITLES[t]) for t in rest]
        elif FIGURES[name].varies == "load":
            found += [
                Point(t, w, load * part, label=f"{TITLES[t]}, load × {part:g}")
                for t in transports
                for part in SHARES
            ]
        else:
            found += [Point(t, w, load, label=TITLES[t]) for t in transports]
    return found


def choose(name: str, text: str, allowed: tuple[str, ...], option: str) -> tuple[str, ...]:
    """The names in `text`, parted by commas; all of them, or a UsageError."""
    names = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    for one in names:
        if one not in allowed:
            raise UsageError(f"{option} {one} is not in {name}; choose from {', '.join(allowed)}")
    return names or allowed


@functools.cache
def mean_bytes(workload: str) -> float:
    """Mean size of a workload's messages, cut at 1 MB, as homa-bench says it."""
    done = subprocess.run(
        [homa_bench(), "list", "--json"], capture_output=True, text=True, check=False
    )
    try:
        rows = json.loads(done.stdout)["workloads"]
        return next(float(row["mean_bytes"]) for row in rows if row["name"] == workload)
    except (ValueError, KeyError, StopIteration):
        raise LabError(
            f"homa-bench does not say how long messages of {workload} are; run ./homa build"
        ) from None


def rate_of(point: Point, link_bps: float) -> float:
    """RPCs per second of each host: each direction has its requests and its responses."""
    return point.load * link_bps / 8 / (2 * mean_bytes(point.workload))


def effort_of(point: Point, hosts: int, link_bps: float, mtu: int) -> float:
    """Processors that such a network needs, by the figures above."""
    rpcs = hosts * rate_of(point, link_bps)
    packets = hosts * point.load * link_bps / 8 / (mtu - HEADERS) + 2 * rpcs
    return 2 * rpcs * MESSAGE_S + packets * PACKET_S


def dilation_for(points: list[Point], hosts: int, link_bps: float, mtu: int, cores: int) -> float:
    """How many times slower than `link_bps` links have to be for all of `points`, at least."""
    most = max(effort_of(point, hosts, link_bps, mtu) for point in points)
    return max(1.0, most / (SHARE * cores))
