# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs of `./homa lab run` as if they had been measured: what each experiment gives, without packets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lab.bench.tas import Series
from lab.bench.tas_rows import KERNEL
from lab.bench.tas_rows import Row as TasRow
from lab.cluster.arguments import Wanted
from lab.cluster.points import FIGURES, points_of
from lab.cluster.real_and_simulated import Compared, Row
from lab.cluster.setup import Setup
from lab.coexist import grid
from lab.coexist.measured import Measured as Beside
from lab.coexist.shares import Times
from lab.failures import faults
from lab.failures.measured import Fates, Others
from lab.failures.measured import Measured as Failed
from lab.incast import bursts
from lab.incast.measured import Measured as Burst
from lab.sustained import loads
from lab.sustained.loads import Measured as Sustained

MANY = 1200  # messages behind each percentile
FACTS = {
    "link_bps": 1e8, "dilation": 250.0, "window_s": 10.0, "busy": 0.47, "late_p99_ns": 8e4,
    "failed": 0.0, "completed": 12_000.0, "drops": 3.0, "sim_drops": 2.0, "peak_queue": 4e4,
    "sim_peak_queue": 3e4, "bursts": 30.0, "gives_up": 5.0,
}  # fmt: skip
# P99 of Homa's shortest tenth, ns, and by how many times TCP's is longer.
HOMA_P99, TCP = 200e3, 40.0


def percentiles(p99: float, count: int) -> dict[str, float | None]:
    """P50 is a quarter of P99; none of few messages."""
    return {"p50": p99 / 4, "p99": p99} if count >= 1000 else {"p50": None, "p99": None}


def figure(name: str, wanted: Wanted, setup: Setup, count: int = MANY) -> list[Compared]:
    """The simulator's times are a tenth longer than the lab's; TCP's longest tenth is only twice Homa's."""
    found = []
    chosen = FIGURES[name].quick if wanted.quick else FIGURES[name].workloads
    for point in points_of(name, chosen, tuple((wanted.transports or "homa,tcp").split(","))):
        rows = []
        for n in range(10):
            p99 = HOMA_P99 * (1 + n) * (2 if point.levels < 8 else 1) * (0.5 + point.load / 2)
            if point.transport == "tcp":
                p99 *= TCP if n < 9 else 2
            p99 *= 1 + 0.02 * (setup.seed - 1)
            both = (percentiles(p99, count), percentiles(1.1 * p99, count))
            share = (0.001 * n, 0.002 * n) if count >= 1000 else (None, None)
            slow = dict(zip(("lab", "sim"), share, strict=True))
            rows.append(Row(100 * 2**n, 200 * 2**n, count, count, 2e4, 2e4, *both, slow))
        label, levels = point.label, point.levels
        found.append(
            Compared(label, point.transport, point.workload, point.load, levels, rows, FACTS)
        )
    return found


def incast(name: str, wanted: Wanted, setup: Setup, count: int = MANY) -> list[Burst]:
    """Without control 13 packets of 40 senders are lost."""
    found = []
    for kind in bursts.KINDS:
        for senders in bursts.QUICK_SENDERS if wanted.quick else bursts.SENDERS:
            p99 = 1e6 * senders * (1 if kind == "homa" else 5)
            lost = 13.0 if kind != "homa" and senders == 40 else 0.0
            times = (percentiles(p99, count), percentiles(0.9 * p99, count))
            facts = {**FACTS, "drops": lost}
            cell = bursts.Cell(kind, senders)
            found.append(Burst(cell, count, count, 4e5 * senders, *times, facts))
    return found


def failures(name: str, wanted: Wanted, setup: Setup, count: int = MANY) -> list[Failed]:
    """One host that is gone costs the RPCs to it, and nobody else anything."""
    found = []
    for transport in faults.TRANSPORTS:
        for fault in faults.FAULTS:
            short = percentiles(3e5 if fault == "buffer" else 2e5, count)
            others = Others(5 * count, 0, count, short, short)
            gone = Fates(700, 90, {"ETIMEDOUT": 90}, 2.5, 5.0, 5.04)
            fates = gone if fault == "kill" else Fates(800, 0, {}, 2.5)
            cell = faults.Cell(transport, "w4", 10, fault)
            found.append(Failed(cell, others, fates, others, fates, FACTS))
    return found


def sustained(name: str, wanted: Wanted, setup: Setup, count: int = MANY) -> list[Sustained]:
    """All loads up to 88 % are sustained."""
    chosen = loads.QUICK_LOADS if wanted.quick else loads.LOADS
    cells = loads.cells("w4", chosen, ("homa",), setup.seed)
    return [
        Sustained(c, [g + c.seed / 1e4] * 2, [g] * 2, FACTS)
        for c in cells
        for g in [0.0 if c.load <= 88 else 0.05]
    ]


def coexist(name: str, wanted: Wanted, setup: Setup, count: int = MANY) -> list[Beside]:
    """Streams lose 3 points more than they must, beside homad 6; Homa's short P99 is 1.5 times longer."""
    rpc, streams = grid.QUICK_RPCS if wanted.quick else (30,), (10, 40)
    found = []
    for cell in grid.plan(grid.QUICK_WORKLOADS, rpc, streams, tuple(grid.KINDS), False):
        if not cell.rpc:
            found.append(Beside(cell, carried=4e7, must_lose=0.0, facts=FACTS))
            continue
        p99 = 2e5 * (1.5 if cell.stream else 1.0) * (30 if cell.kind == "tcp" else 1)
        both = percentiles(p99, count)
        known = count >= 1000
        slow = (p99 / 8e4, p99 / 2e4) if known else (None, None)
        short = Times(64, 400, count, both["p50"], both["p99"], *slow)
        facts = {**FACTS, "streams_share": 0.38}
        if not cell.stream:
            found.append(Beside(cell, [short] * 10, short, facts=facts, sim_short=short))
            continue
        lost = 0.06 if cell.shared else 0.04
        carried = (4e7 * (1 - lost), lost, 0.0 if cell.shared else 0.01)
        found.append(Beside(cell, [short] * 10, short, *carried, facts))
    return found


def series(rows: Sequence[TasRow], points: list, rounds: int, seconds: float) -> list[Series]:
    """Through homad all is twice as fast, and half as late; ways differ in nothing else."""
    found = []
    for row in rows:
        for point in row.points:
            for way in row.ways:
                times = 1.0 if way == KERNEL else 2.0
                values = {"samples": float(MANY // rounds), "jain": 0.99}
                for metric in row.metrics:
                    if metric.name != "jain":
                        values[metric.name] = 100.0 / times if metric.lower else 100.0 * times
                found.append(Series(row, point, way, [dict(values) for _ in range(rounds)]))
    return found


MAKERS: dict[str, Callable[..., list]] = {
    "coexist": coexist, "incast": incast, "failures": failures, "sustained": sustained,
    **dict.fromkeys(FIGURES, figure),
}  # fmt: skip


class Lab:
    """Stands in for lab.cluster.experiments: gives runs of a kind, and notes what it was asked for."""

    def __init__(self, count: int = MANY) -> None:
        self.count = count
        self.asked: list[tuple[str, Setup, Wanted]] = []
        self.doubt: Callable[[Sequence], list] = list

    def find(self, name: str, quick: bool) -> tuple[int, Callable]:
        """As experiments.find()."""

        def choose(wanted: Wanted) -> Callable:
            def measure(setup: Setup, json_file: Path | None, plot: Path | None) -> list:
                self.asked.append((name, setup, wanted))
                return self.doubt(MAKERS[name](name, wanted, setup, self.count))

            return measure

        return 8 if quick else 40, choose
