# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which loads are tried, and what a run says of one.

A load is a share of each link in each direction, with the headers of all data packets. It is
sustained by the simulator's rule (lab/sim/sustain.py): what is under way, less what the oracle has
under way with the same arrivals, grows by less than 1 % of what is offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from lab.cluster.points import TITLES, Point
from lab.coexist.grid import wire_share
from lab.errors import LabError
from lab.sim.stats import stat
from lab.sim.sustain import SEEDS, WINDOWS, Verdict, growth

NAME = "sustained"
WORKLOADS = ("w1", "w2", "w3", "w4", "w5")
WORKLOAD = "w4"
TRANSPORTS = ("homa", "tcp")
HOSTS, QUICK_HOSTS = 8, 4
LOADS, QUICK_LOADS = (80, 84, 88, 92), (80, 88)  # percent
QUICK_S = 200.0  # longest window with --quick


@dataclass(frozen=True)
class Cell:
    """`load` percent of each link, on the wire, of RPCs of `workload` by `transport`; one seed."""

    transport: str
    workload: str
    load: int
    seed: int

    def point(self, mtu: int) -> Point:
        """For what runs it: its load is payload."""
        whole = wire_share(Point(self.transport, self.workload, 1.0), mtu)
        load = self.load / 100 / whole
        return Point(self.transport, self.workload, load, label=TITLES[self.transport])

    def words(self) -> str:
        """For a line of progress."""
        name = f"{self.workload.upper()}, {TITLES[self.transport]}"
        return f"{name}: {self.load} % on the wire, seed {self.seed}"


@dataclass(frozen=True)
class Measured:
    """One run: by how much more than the oracle's what is under way grows in each window, as a share
    of what is offered, in the lab and simulated; `doubts` say why it does not count."""

    cell: Cell
    lab: list[float | None]
    sim: list[float | None]
    facts: dict[str, float] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """For a file; from_json() reads it."""
        return {**asdict(self), "counts": not self.doubts}


def from_json(document: dict) -> Measured:
    """What as_json() gave."""
    names = ("lab", "sim", "facts", "doubts")
    return Measured(Cell(**document["cell"]), *(document[name] for name in names))


def cells(workload: str, loads: Sequence[int], kinds: Sequence[str], seed: int) -> list[Cell]:
    """All runs."""
    seeds = range(seed, seed + SEEDS)
    return [Cell(kind, workload, load, s) for kind in kinds for load in loads for s in seeds]


def growths(found: Sequence[dict], sim: dict) -> tuple[list[float | None], list[float | None]]:
    """Those of the lab, from what all its hosts say, and those of homa-sim's result."""
    try:
        rows = [[float(v) for v in data["backlog"]["samples"]] for data in found]
        interval = float(found[0]["backlog"]["interval_s"])
        offered = sum(float(data["throughput"]["offered_gbps"]) for data in found)
        reference = sim["sim"]["backlog"]["reference"]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise LabError(f"a result lacks or damages {error}; rebuild with ./homa build") from None
    together = {
        "throughput": {"offered_gbps": offered},
        "sim": {
            "backlog": {
                "interval_s": interval,
                "samples": [sum(values) for values in zip(*rows, strict=False)],
                "reference": reference,
            }
        },
    }
    return [growth(together, w) for w in WINDOWS], [growth(sim, w) for w in WINDOWS]


def verdict(runs: Sequence[Measured], where: str) -> Verdict:
    """On one load; `where` is "lab" or "sim"."""
    return Verdict(tuple(stat(getattr(r, where)[n] for r in runs) for n in range(len(WINDOWS))))


def highest(results: Sequence[Measured], transport: str, where: str) -> int | None:
    """The highest load that is sustained below the lowest that is not shown to be; of the lab only
    loads whose runs all count. None if there is none, or the lowest does not count."""
    found = None
    mine = [r for r in results if r.cell.transport == transport]
    for load in sorted({r.cell.load for r in mine}):
        runs = [r for r in mine if r.cell.load == load]
        if where == "lab" and any(r.doubts for r in runs):
            break
        if not verdict(runs, where).sustained:
            break
        found = load
    return found
