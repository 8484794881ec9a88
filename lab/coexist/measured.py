# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What was measured in a cell, and why it may not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from lab.cluster.real_and_simulated import BUSY, doubts_of, one_queue
from lab.coexist.grid import Cell, alone
from lab.coexist.shares import Times, lost

ENOUGH = 0.95  # of what they ask for: streams alone that carry less had no generator for it
LATE = 0.05  # of the window: streams whose window began later than that saw another load


@dataclass(frozen=True)
class Measured:
    """One cell. `tenths` and `short` are round trips of its RPCs, nothing of a cell without; `sim_short`
    what the simulator says of the short ones without streams (it has one protocol in a network);
    `carried` is what the streams carried and `must_lose` the share they cannot have, None without
    streams; `lost` is compared with the streams alone. `doubts` say why it does not count."""

    cell: Cell
    tenths: list[Times] = field(default_factory=list)
    short: Times | None = None
    carried: float | None = None
    lost: float | None = None
    must_lose: float | None = None
    facts: dict[str, float] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    sim_short: Times | None = None

    def as_json(self) -> dict[str, object]:
        """For a file; from_json() reads it."""
        return {**asdict(self), "published": self.cell.published, "counts": not self.doubts}


def from_json(document: dict) -> Measured:
    """What as_json() gave."""
    short, sim = document["short"], document["sim_short"]
    return Measured(
        Cell(**document["cell"]),
        [Times(**one) for one in document["tenths"]],
        Times(**short) if short else None,
        *(document[name] for name in ("carried", "lost", "must_lose", "facts", "doubts")),
        Times(**sim) if sim else None,
    )


def find(
    results: Sequence[Measured], workload: str, kind: str, rpc: int, stream: int
) -> Measured | None:
    """The result of that cell."""
    return of(results, Cell(workload, kind, rpc, stream))


def of(results: Sequence[Measured], cell: Cell) -> Measured | None:
    """The result of `cell`."""
    return next((one for one in results if one.cell == cell), None)


def loss_of(cell: Cell, carried: float | None, before: Sequence[Measured]) -> float | None:
    """What the streams of `cell` lose against the streams alone."""
    without = of(before, alone(cell))
    return lost(carried, without.carried) if cell.rpc and without else None


def doubts(cell: Cell, facts: dict[str, float], note: str, before: Sequence[Measured]) -> list[str]:
    """Why the cell does not count."""
    if cell.rpc:
        found = doubts_of(facts, note)
    else:
        found = [*one_queue(facts), *([note] if note else [])]
        if facts["busy"] > BUSY:
            found.append(f"the processors were {facts['busy']:.0%} busy, more than {BUSY:.0%}")
    if not cell.stream:
        return found
    if facts["streams_failed"]:
        found.append(f"{facts['streams_failed']:,.0f} connections of streams failed")
    if facts["streams_late_s"] > LATE * facts["window_s"]:
        found.append(f"streams were counted {facts['streams_late_s']:.1f} s late")
    without = of(before, alone(cell))
    if not cell.rpc and facts["streams_share"] < ENOUGH * cell.stream / 100:
        share = facts["streams_share"]
        found.append(f"streams alone carried {share:.1%} of the links, not {cell.stream} %")
    elif cell.rpc and without is not None and without.doubts:
        found.append("what the streams carry alone does not count")
    return found
