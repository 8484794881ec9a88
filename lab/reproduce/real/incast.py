# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Many hosts that answer one, on real packets, with the simulator beside them."""

from __future__ import annotations

from collections.abc import Sequence

from lab.cluster.real_and_simulated import divided
from lab.incast import bursts, plot, show
from lab.incast.bursts import KINDS, Cell
from lab.incast.measured import Measured
from lab.reproduce.real.experiment import (
    One, Runs, Value, compared_with_simulated, goal, notes, off, over_seeds, painted,
)  # fmt: skip
from lab.sim import compare
from lab.sim.figures.base import Output

_COLUMNS = [
    "seed", "kind", "senders", "n", "n_sim", "burst_on_wires_us", "p50_us", "p99_us", "sim_p50_us",
    "sim_p99_us", "drops", "sim_drops", "peak_queue", "sim_peak_queue",
]  # fmt: skip
_By = dict[Cell, Measured]


def outputs(runs: Runs) -> dict[str, Output]:
    """Of its one item."""
    seeds: list[_By] = runs.by_cell()
    cells = list(seeds[0])
    dropped = show.lost_with_control(runs.all())  # type: ignore[arg-type]
    what = "Homa with incast control: packets that the client's port drops, all runs"
    rows = [goal(what, None if dropped is None else compare.exactly(dropped), 0)]
    most = max(cell.senders for cell in cells)
    for kind in KINDS:
        other, homa = Cell(kind, most), Cell("homa", most)
        if kind != "homa" and {other, homa} <= set(cells):
            what = f"{most} to 1: P99 of {KINDS[kind].title} to Homa with incast control"
            rows.append(compare.info(what, None, _ratio(seeds, other, homa)))
    for cell in cells:
        rows.append(_p99(seeds, cell))
    for cell in cells:
        rows += _simulated(seeds, cell)

    paint = painted(lambda path: plot.paint(show.TITLE, runs.setup.buffer, runs.by_seed[0], path))
    said = notes(runs, f"up to {most} hosts answer one", runs.facts())
    said += [_drops(seeds[0][cell]) for cell in cells]
    values: dict[str, object] = {"runs": runs.as_json()}
    return {
        "lab-incast": Output(show.TITLE, _COLUMNS, runs.records(_record), rows, paint, values, said)
    }


def _ratio(seeds: Sequence[_By], one: Cell, other: Cell) -> Value:
    def of(found: _By) -> One:
        a, b = found[one], found[other]
        return divided(a.lab["p99"], b.lab["p99"]), min(a.count, b.count)

    return over_seeds(of(found) for found in seeds)


def _p99(seeds: Sequence[_By], cell: Cell) -> compare.Row:
    """To the time that the responses of a burst take on the client's link."""
    value = over_seeds(
        (divided(found[cell].lab["p99"], found[cell].least), found[cell].count) for found in seeds
    )
    what = f"{cell.senders} to 1, {KINDS[cell.kind].title}: P99 to a burst on bare wires"
    return compare.info(what, None, value)


def _simulated(seeds: Sequence[_By], cell: Cell) -> list[compare.Row]:
    found = []
    for name in ("p50", "p99"):
        value = over_seeds(
            (
                off(one[cell].sim[name], one[cell].lab[name]),
                min(one[cell].count, one[cell].sim_count),
            )
            for one in seeds
        )
        what = f"{cell.senders} to 1, {KINDS[cell.kind].title}"
        found.append(compared_with_simulated(what, name, value, judged=False))
    return found


def _drops(one: Measured) -> str:
    facts = one.facts
    return (
        f"{one.cell.words()}: {facts['bursts']:,.0f} bursts; packets dropped {facts['drops']:,.0f} "
        f"(simulated {facts['sim_drops']:,.0f}); longest queue {facts['peak_queue'] / 1e3:,.0f} KB "
        f"(simulated {facts['sim_peak_queue'] / 1e3:,.0f}) of {bursts.RESPONSE:,}-byte responses."
    )


def _record(seed: int, one: Measured) -> list[object]:
    times = [where[name] for where in (one.lab, one.sim) for name in ("p50", "p99")]
    facts = ("drops", "sim_drops", "peak_queue", "sim_peak_queue")
    return [
        seed, one.cell.kind, one.cell.senders, one.count, one.sim_count, one.least / 1e3,
        *("" if t is None else t / 1e3 for t in times), *(one.facts[name] for name in facts),
    ]  # fmt: skip
