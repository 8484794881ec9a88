# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""RPCs beside streams of TCP (SNIA'24): three items, which are three views of one grid's runs.

The slides print which cells were measured and no number of a result, so nothing stands in the column
of published numbers; goals are this project's.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.cluster.real_and_simulated import divided
from lab.coexist import plot, show
from lab.coexist.grid import KINDS, Cell
from lab.coexist.measured import Measured
from lab.reproduce.real.experiment import (
    One, Runs, Value, compared_with_simulated, goal, notes, off, over_seeds, painted,
)  # fmt: skip
from lab.sim import compare
from lab.sim.figures.base import Output
from lab.sim.published import published
from lab.sim.stats import stat

_COLUMNS = [
    "seed", "workload", "kind", "rpc", "stream", "short_n", "short_p50_us", "short_p99_us",
    "short_slowdown_p99", "sim_short_p50_us", "sim_short_p99_us", "carried_bps", "lost", "must_lose",
    "drops",
]  # fmt: skip
_SHOWN = {"snia-matrix": ("lost",), "snia-slowdown": ("short", "sizes"), "snia-rtt": ("rtt",)}
_By = dict[Cell, Measured]


def outputs(runs: Runs) -> dict[str, Output]:
    """Of its three items."""
    seeds: list[_By] = runs.by_cell()
    cells = [cell for cell in seeds[0] if cell.rpc]
    rows = {
        "snia-matrix": [row for cell in cells if cell.stream for row in _loses(seeds, cell)],
        "snia-slowdown": [
            *(row for cell in cells if cell.stream for row in _beside(seeds, cell)),
            *(_slowdown(seeds, cell) for cell in cells),
        ],
        "snia-rtt": [row for cell in cells for row in _round_trips(seeds, cell)],
    }
    said = notes(
        runs, f"{runs.setup.hosts} hosts that all send each other RPCs and streams", runs.facts()
    )
    said.append(_left_out(cells))
    if len(runs.seeds) > 1:
        said.append(f"The figure shows seed {runs.seeds[0]}.")
    made = {}
    for name, shown in _SHOWN.items():
        paint = painted(
            lambda path, shown=shown: plot.paint(show.TITLE, runs.by_seed[0], path, shown)
        )
        # All numbers of the grid's runs are in one of the three files.
        values: dict[str, object] = {}
        if name == "snia-matrix":
            values["cells"] = runs.as_json()
        made[name] = Output(
            show.TITLE, _COLUMNS, runs.records(_record), rows[name], paint, values, said
        )
    return made


def _left_out(cells: Sequence[Cell]) -> str:
    """How much of the talk's grid this is."""
    known = published()["snia"]
    there = sum(len(cell.split()) for row in known["matrix"].values() for cell in row)
    here = len({(c.workload, c.rpc, c.stream) for c in cells if c.published})
    return (
        f"{here} of the {there} cells that the talk measured (workload, load of RPCs, load of streams); "
        f"./homa lab run coexist measures all of them, which takes some nights. Short: the smallest 20 %."
    )


def _name(cell: Cell) -> str:
    beside = f"beside {cell.stream} % of streams" if cell.stream else "without streams"
    return f"{cell.workload.upper()} {cell.rpc} %, {KINDS[cell.kind].title}, {beside}"


def _loses(seeds: Sequence[_By], cell: Cell) -> list[compare.Row]:
    """What streams lose beside those RPCs, in all and beyond what they must."""
    found = [one[cell] for one in seeds]
    over = _percent([(r.lost, r.must_lose) for r in found])
    most = 100 * published()["goals"]["coexist_lost"]
    what = f"{_name(cell)}: streams lose beyond what they must"
    judged = cell.kind in show.WITH_GOALS
    return [
        compare.info(f"{_name(cell)}: streams lose", None, _percent([(r.lost, 0.0) for r in found]),
                     "%", 1),
        goal(what, over, most, "%") if judged else compare.info(what, None, over, "%", 1),
    ]  # fmt: skip


def _percent(shares: Sequence[tuple[float | None, float | None]]) -> Value:
    """The mean of differences; shares of throughput are of a whole window and have no n."""
    known = [100 * (a - b) for a, b in shares if a is not None and b is not None]
    return stat(known) if len(known) == len(shares) else None


def _beside(seeds: Sequence[_By], cell: Cell) -> list[compare.Row]:
    """Short RPCs' P99: to the same without streams, and TCP's to these."""
    rows = []
    alone = Cell(cell.workload, cell.kind, cell.rpc, 0)
    if alone in seeds[0]:
        what = f"{_name(cell)}: short P99 to that without streams"
        ours = _ratio(seeds, cell, alone)
        judged = cell.kind in show.WITH_GOALS and cell.stream == show.NOISE
        most = published()["goals"]["coexist_short"]
        rows.append(goal(what, ours, most) if judged else compare.info(what, None, ours))
    tcp = Cell(cell.workload, "tcp", cell.rpc, cell.stream)
    if cell.kind != "tcp" and tcp in seeds[0]:
        what = f"{_name(cell)}: short P99 of TCP RPCs to these"
        rows.append(compare.info(what, None, _ratio(seeds, tcp, cell)))
    return rows


def _ratio(seeds: Sequence[_By], one: Cell, other: Cell) -> Value:
    def of(found: _By) -> One:
        a, b = found[one].short, found[other].short
        assert a and b
        return divided(a.p99_ns, b.p99_ns), min(a.count, b.count)

    return over_seeds(of(found) for found in seeds)


def _short(seeds: Sequence[_By], cell: Cell, name: str, scale: float = 1.0) -> Value:
    def of(found: _By) -> One:
        short = found[cell].short
        assert short
        value = getattr(short, name)
        return None if value is None else value * scale, short.count

    return over_seeds(of(found) for found in seeds)


def _slowdown(seeds: Sequence[_By], cell: Cell) -> compare.Row:
    what = f"{_name(cell)}: short messages, P99 slowdown"
    return compare.info(what, None, _short(seeds, cell, "slowdown_p99"))


def _round_trips(seeds: Sequence[_By], cell: Cell) -> list[compare.Row]:
    """Of short messages; without streams also by how much the simulator is off."""
    rows = [
        compare.info(f"{_name(cell)}: short messages, {name.upper()}", None,
                     _short(seeds, cell, f"{name}_ns", 1e-6), "ms")
        for name in ("p50", "p99")
    ]  # fmt: skip
    if all(one[cell].sim_short for one in seeds):
        rows += [_simulated(seeds, cell, name) for name in ("p50", "p99")]
    return rows


def _simulated(seeds: Sequence[_By], cell: Cell, name: str) -> compare.Row:
    def of(found: _By) -> One:
        lab, sim = found[cell].short, found[cell].sim_short
        assert lab and sim
        times = (getattr(one, f"{name}_ns") for one in (sim, lab))
        return off(*times), min(lab.count, sim.count)

    value = over_seeds(of(found) for found in seeds)
    return compared_with_simulated(_name(cell), name, value, judged=False)


def _record(seed: int, one: Measured) -> list[object]:
    cell, short, sim = one.cell, one.short, one.sim_short
    known = [short and short.p50_ns, short and short.p99_ns]
    known += [sim and sim.p50_ns, sim and sim.p99_ns]
    p50, p99, sim50, sim99 = ("" if not ns else ns / 1e3 for ns in known)
    slow = short.slowdown_p99 if short else None
    rest = (one.carried, one.lost, one.must_lose, one.facts["drops"])
    return [
        seed, cell.workload, cell.kind, cell.rpc, cell.stream, short.count if short else 0, p50, p99,
        "" if slow is None else slow, sim50, sim99, *("" if v is None else v for v in rest),
    ]  # fmt: skip
