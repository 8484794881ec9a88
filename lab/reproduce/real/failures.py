# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Hosts, links and buffers that fail, on real packets, with the simulator beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.cluster.plot import draw_to
from lab.cluster.points import TITLES
from lab.cluster.real_and_simulated import divided
from lab.failures import show
from lab.failures.faults import FAULTS, Cell
from lab.failures.measured import Fates, Measured
from lab.reproduce.real.experiment import (
    One, Runs, Value, compared_with_simulated, goal, notes, off, over_seeds, painted,
)  # fmt: skip
from lab.sim import compare, draw
from lab.sim.figures.base import Output

_COLUMNS = [
    "seed", "transport", "fault", "others", "others_failed", "others_wrong", "short_n", "short_p50_us",
    "short_p99_us", "sim_short_p50_us", "sim_short_p99_us", "to_last_came", "to_last_failed",
    "to_last_longest_s", "error_first_s", "error_last_s",
]  # fmt: skip
_By = dict[Cell, Measured]


def outputs(runs: Runs) -> dict[str, Output]:
    """Of its one item."""
    seeds: list[_By] = runs.by_cell()
    cells = list(seeds[0])
    unjust = show.unjust(runs.all())  # type: ignore[arg-type]
    what = (
        "Homa: RPCs that failed or had wrong bytes though nothing happened to their hosts for long"
    )
    rows = [goal(what, None if unjust is None else compare.exactly(unjust), 0)]
    for cell in cells:
        calm = Cell(cell.transport, cell.workload, cell.rpc, "none")
        if cell.fault != "none" and calm in cells:
            what = f"{_name(cell)}: others' short P99 to that without a fault"
            rows.append(compare.info(what, None, _ratio(seeds, cell, calm, "lab")))
            simulated = _ratio(seeds, cell, calm, "sim")
            rows.append(compare.info(f"{what}, simulated", None, simulated))
    for cell in cells:
        rows.append(_longest(seeds, cell))
    for cell in cells:
        rows += _simulated(seeds, cell)
    said = notes(
        runs, f"{runs.setup.hosts} hosts, to the last of which something happens", runs.facts()
    )
    said += [_fates(seeds[0][cell]) for cell in cells]
    values: dict[str, object] = {"runs": runs.as_json()}
    paint = painted(lambda path: _paint(list(runs.by_seed[0]), path))
    made = Output(show.TITLE, _COLUMNS, runs.records(_record), rows, paint, values, said)
    return {"lab-failures": made}


def _name(cell: Cell) -> str:
    return f"{TITLES[cell.transport]}, {FAULTS[cell.fault]}"


def _ratio(seeds: Sequence[_By], one: Cell, calm: Cell, where: str) -> Value:
    def of(found: _By) -> One:
        name = "others" if where == "lab" else "sim_others"
        a, b = (getattr(found[cell], name) for cell in (one, calm))
        return divided(a.short["p99"], b.short["p99"]), min(a.short_count, b.short_count)

    return over_seeds(of(found) for found in seeds)


def _longest(seeds: Sequence[_By], cell: Cell) -> compare.Row:
    """The slowest RPC to the last host that came, to the time after which Homa gives one up."""
    known = [
        longest / found[cell].facts["gives_up"]
        for found in seeds
        if (longest := found[cell].concerned.longest)
    ]
    value = compare.exactly(max(known)) if known else None
    what = f"{_name(cell)}: slowest RPC to the last host, to the time after which Homa gives up"
    return compare.info(what, None, value)


def _simulated(seeds: Sequence[_By], cell: Cell) -> list[compare.Row]:
    found = []
    for name in ("p50", "p99"):
        value = over_seeds(
            (
                off(one[cell].sim_others.short[name], one[cell].others.short[name]),
                min(one[cell].others.short_count, one[cell].sim_others.short_count),
            )
            for one in seeds
        )
        what = f"{_name(cell)}: others' short messages"
        found.append(compared_with_simulated(what, name, value, judged=False))
    return found


def _fates(one: Measured) -> str:
    others, apart, simulated = one.others, one.concerned, one.sim_concerned
    return (
        f"{_name(one.cell)}: {others.count:,} RPCs between the other hosts, {others.failed:,} failed, "
        f"{others.wrong:,} wrong; to the last host {_ends(apart)} (simulated, and from it: "
        f"{_ends(simulated)})."
    )


def _ends(fates: Fates) -> str:
    when = ""
    if fates.error_first is not None and fates.error_last is not None:
        when = f" after {fates.error_first:.2f} to {fates.error_last:.2f} s"
    return f"{fates.completed:,} came, {fates.failed:,} failed{when}"


def _record(seed: int, one: Measured) -> list[object]:
    lab, sim, apart = one.others, one.sim_others, one.concerned
    times = [where.short[name] for where in (lab, sim) for name in ("p50", "p99")]
    ends = (apart.longest, apart.error_first, apart.error_last)
    return [
        seed, one.cell.transport, one.cell.fault, lab.count, lab.failed, lab.wrong, lab.short_count,
        *("" if t is None else t / 1e3 for t in times), apart.completed, apart.failed,
        *("" if s is None else s for s in ends),
    ]  # fmt: skip


def _paint(found: Sequence[Measured], path: Path) -> None:
    """What the others felt, and how long the slowest RPC to the last host took, by what failed."""
    from matplotlib.lines import Line2D

    faults = [name for name in FAULTS if any(one.cell.fault == name for one in found)]
    colours = {"homa": draw.BLUE, "tcp": draw.RED}
    with draw.canvas(8.6, 4.2, 1, 2) as (figure, panels):
        figure.subplots_adjust(left=0.08, right=0.98, top=0.7, bottom=0.12, wspace=0.2)
        titles = ("RPCs of others: short P99, ms", "slowest RPC to the last host that came, s")
        for panel, title, value in zip(panels[0], titles, (_short_ms, _slowest_s), strict=True):
            draw.plain(panel)
            for one in found:
                x = faults.index(one.cell.fault) + (0.12 if one.cell.transport == "tcp" else -0.12)
                for where, face, size in (
                    ("sim", "white", 9),
                    ("lab", colours[one.cell.transport], 6),
                ):
                    y = value(one, where)
                    if y:
                        panel.plot(
                            [x], [y], marker="o", markersize=size, linestyle="", markerfacecolor=face,
                            markeredgecolor=colours[one.cell.transport],
                        )  # fmt: skip
            panel.set_yscale("log")
            panel.set_xlim(-0.5, len(faults) - 0.5)
            panel.set_xticks(range(len(faults)), [FAULTS[name] for name in faults])
            panel.set_title(title, loc="left", fontsize=9, fontweight="bold")
        draw.headline(figure, show.TITLE, "filled: real packets; hollow: simulated", 0.08)
        kinds = list(dict.fromkeys(one.cell.transport for one in found))
        handles = [
            Line2D([], [], color=colours[kind], marker="o", markersize=7, linestyle="")
            for kind in kinds
        ]
        draw.legend(figure, handles, [TITLES[kind] for kind in kinds])
        draw_to(path, figure)


def _short_ms(one: Measured, where: str) -> float | None:
    p99 = (one.others if where == "lab" else one.sim_others).short["p99"]
    return None if p99 is None else p99 / 1e6


def _slowest_s(one: Measured, where: str) -> float | None:
    return (one.concerned if where == "lab" else one.sim_concerned).longest
