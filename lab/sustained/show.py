# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa lab run sustained` shows: a line per run, a table per transport, a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.cluster import common_text
from lab.cluster.points import TITLES
from lab.cluster.setup import Setup
from lab.console import console, table
from lab.sim.stats import Stat
from lab.sim.sustain import LIMIT
from lab.sustained import loads, run
from lab.sustained.loads import Cell, Measured
from lab.units import format_rate

TITLE = "The highest load that is sustained"


def begin(setup: Setup, cells: list[Cell], where: str) -> None:
    """Say what is going to be measured, and on what."""
    link_bps, dilation = run.rate(setup, cells)
    what = [
        f"{TITLE}: {setup.hosts} hosts, {format_rate(link_bps)} links ({dilation:g} times slower than "
        f"{format_rate(setup.link_bps)}), MTU {setup.mtu}, {setup.buffer:,} bytes of buffer per port",
        f"{len(cells)} runs of {setup.longest_s:g} s; sustained: what is under way grows by less than "
        f"{LIMIT:.0%} of what is offered, beyond the oracle's (95 %)",
    ]
    common_text.begin(what, [where])


def one(result: Measured) -> None:
    """A line as soon as a run is there."""
    facts = result.facts
    grown = ", ".join(_percent(v) for v in result.lab)
    common_text.run(
        f"{result.cell.words()}: n {facts['completed']:,.0f}, grows by {grown} of what is offered; "
        f"drops {facts['drops']:,.0f}; processors {facts['busy']:.0%} busy",
        result,
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"


def _interval(value: Stat | None) -> str:
    if value is None:
        return "–"
    half = "" if value.half is None else f" ± {value.half:.2%}"
    return f"{value.mean:.2%}{half}"


def _table(transport: str, mine: Sequence[Measured]):  # noqa: ANN202 (rich is imported late)
    title = f"{TITLES[transport]}: growth of what is under way, beyond the oracle's"
    grid = table(
        title, "load", "lab: first\nthird", "the rest", "lab", "sim: first\nthird", "the rest",
        "sim", "counts",
    )  # fmt: skip
    for load in sorted({r.cell.load for r in mine}):
        runs = [r for r in mine if r.cell.load == load]
        cells = []
        for where in ("lab", "sim"):
            found = loads.verdict(runs, where)
            cells += [*(_interval(w) for w in found.windows), found.words()]
        grid.add_row(f"{load} %", *cells, "no" if any(r.doubts for r in runs) else "yes")
    return grid


def end(setup: Setup, results: list[Measured], json_file: Path | None) -> None:
    """The tables, the summary and the file."""
    out = console()
    summary: dict[str, dict[str, int | None]] = {}
    for transport in dict.fromkeys(r.cell.transport for r in results):
        out.print(_table(transport, [r for r in results if r.cell.transport == transport]))
        found = {where: loads.highest(results, transport, where) for where in ("lab", "sim")}
        summary[transport] = found
        words = {w: "none of these" if v is None else f"{v} %" for w, v in found.items()}
        out.print(
            f"{TITLES[transport]} sustains {words['lab']} in the lab (of loads that count), "
            f"{words['sim']} simulated",
            soft_wrap=True,
            markup=False,
        )
    common_text.refused(results)
    document: dict[str, object] = {
        "goals": {name: found["lab"] for name, found in summary.items()},
        "summary": summary,
        "runs": [r.as_json() for r in results],
    }
    common_text.save(json_file, "lab-run sustained", setup, document)
