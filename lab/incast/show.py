# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa lab run incast` shows: a line per run, a table per transport, a summary, a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.cluster import common_text
from lab.cluster.setup import Setup
from lab.console import console, table
from lab.incast import bursts, plot
from lab.incast.bursts import KINDS, Cell
from lab.incast.measured import Measured
from lab.sim.tails import LEAST
from lab.units import format_rate, format_ratio

TITLE = "Incast: many hosts answer one at the same moment"


def begin(setup: Setup, cells: Sequence[Cell], where: str) -> None:
    """Say what is going to be measured, and on what."""
    rate, dilation = bursts.rate(setup)
    what = [
        f"{TITLE}: {format_rate(rate)} links ({dilation:g} times slower than "
        f"{format_rate(setup.link_bps)}), MTU {setup.mtu}, {setup.buffer:,} bytes of buffer per port",
        f"answers of {bursts.RESPONSE:,} bytes take {bursts.LOAD:.0%} of the client's link; incast "
        f"control: beyond {bursts.CONTROL_FROM} open requests",
    ]
    common_text.begin(what, [where])


def one(result: Measured) -> None:
    """A line as soon as a run is there."""
    facts = result.facts
    common_text.run(
        f"{result.cell.words()}: n {result.count:,}, P50 {common_text.us(result.lab['p50'])}, P99 "
        f"{common_text.us(result.lab['p99'])}; drops {facts['drops']:,.0f}; processors {facts['busy']:.0%} busy",
        result,
    )


def _table(kind: str, mine: Sequence[Measured]):  # noqa: ANN202 (rich is imported late)
    grid = table(
        KINDS[kind].title, "hosts", "n", "P50\nlab", "\nsim", "sim /\nlab", "P99\nlab", "\nsim",
        "sim /\nlab", "drops\nlab, sim", "queue KB\nlab, sim", "counts",
    )  # fmt: skip
    for r in mine:
        cells = []
        for name in ("p50", "p99"):
            cells += [
                common_text.us(r.lab[name]),
                common_text.us(r.sim[name]),
                format_ratio(r.ratio(name)),
            ]
        facts = r.facts
        grid.add_row(
            str(r.cell.senders),
            f"{r.count:,}",
            *cells,
            f"{facts['drops']:,.0f}, {facts['sim_drops']:,.0f}",
            f"{facts['peak_queue'] / 1e3:,.0f}, {facts['sim_peak_queue'] / 1e3:,.0f}",
            "no" if r.doubts else "yes",
        )
    return grid


def summary(results: Sequence[Measured]) -> list[dict[str, object]]:
    """With the most senders that all have: P99 of the others to Homa's with control, in the lab
    where both runs count, and simulated."""
    found: list[dict[str, object]] = []
    by = {(r.cell.kind, r.cell.senders): r for r in results}
    for kind in (k for k in KINDS if k != "homa"):
        both = [n for k, n in by if k == kind and ("homa", n) in by]
        if not both:
            continue
        other, homa = by[kind, max(both)], by["homa", max(both)]
        title = KINDS[kind].title
        what = f"{max(both)} to 1: P99 of {title} to Homa with incast control"
        a, b = other.lab["p99"], homa.lab["p99"]
        counts = not other.doubts and not homa.doubts and a is not None and b
        x, y = other.sim["p99"], homa.sim["p99"]
        found.append({
            "what": what,
            "value": a / b if counts else None,
            "sim": x / y if x is not None and y else None,
        })  # fmt: skip
    return found


def lost_with_control(results: Sequence[Measured]) -> int | None:
    """For the scoreboard: packets that the client's port dropped in all runs with incast control;
    None if one of them does not count."""
    mine = [r for r in results if r.cell.kind == "homa"]
    if not mine or any(r.doubts for r in mine):
        return None
    return int(sum(r.facts["drops"] for r in mine))


def end(setup: Setup, results: list[Measured], json_file: Path | None, figure: Path | None) -> None:
    """The tables, the summary, the figure and the file."""
    out = console()
    for kind in dict.fromkeys(r.cell.kind for r in results):
        out.print(_table(kind, [r for r in results if r.cell.kind == kind]))
    rows = summary(results)
    if rows:
        grid = table("lab: only of runs that count", "", "lab", "sim")
        for row in rows:
            values = (row["value"], row["sim"])
            grid.add_row(str(row["what"]), *("–" if v is None else f"{v:.2f}" for v in values))
        out.print(grid)
    few = sum(1 for r in results if r.count < LEAST)
    if few:
        out.print(f"– : fewer than {LEAST:,} RPCs ({few} runs); --messages for more")
    common_text.refused(results)
    if figure:
        plot.paint(TITLE, setup.buffer, results, figure)
        out.print(f"Figure: {figure}", markup=False)
    document: dict[str, object] = {
        "summary": rows,
        "goals": {"drops": lost_with_control(results)},
        "runs": [r.as_json() for r in results],
    }
    common_text.save(json_file, "lab-run incast", setup, document)
