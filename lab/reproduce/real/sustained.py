# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The highest load that is carried for long, on real packets and simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab.cluster.plot import draw_to
from lab.cluster.points import TITLES
from lab.reproduce.real.experiment import Runs, Value, notes, painted
from lab.sim import compare, draw
from lab.sim.figures.base import Output
from lab.sim.published import published
from lab.sim.sustain import LIMIT, WINDOWS
from lab.sustained import loads, show
from lab.sustained.loads import Measured

_COLUMNS = [
    "transport", "workload", "load", "seed", "n", "grows_first_third", "grows_rest",
    "sim_grows_first_third", "sim_grows_rest", "drops",
]  # fmt: skip


def outputs(runs: Runs) -> dict[str, Output]:
    """Of its one item. The experiment has several seeds itself."""
    found: list[Measured] = list(runs.by_seed[0])
    rows: list[compare.Row] = []
    for transport in dict.fromkeys(one.cell.transport for one in found):
        tried = ", ".join(f"{load}" for load in _loads(found, transport))
        title = f"{found[0].cell.workload.upper()}, {TITLES[transport]}"
        lab, sim = (_highest(found, transport, where) for where in ("lab", "sim"))
        what = f"{title}: highest load that is sustained, of {tried}"
        if transport == "homa":
            rows.append(
                compare.at_least(what, None, lab, "%", goal=published()["goals"]["sustained_w4"])
            )
        else:
            rows.append(compare.info(what, None, lab, "%", 0))
        rows.append(compare.info(f"{what}, simulated", None, sim, "%", 0))
        rows += _growths(found, transport, title)

    paint = painted(lambda path: _paint(found, path))
    said = notes(runs, f"{runs.setup.hosts} hosts", [one.facts for one in found])[:2]
    said.append(
        f"Sustained: what is under way grows by less than {LIMIT:.0%} of what is offered, less what the "
        "oracle has under way with the same arrivals, in the first third and in the rest of "
        f"{found[0].facts['window_s']:g} s, by the upper end of the 95 % interval over seeds. A load "
        "above one that is not shown to be sustained does not count."
    )
    records = [_record(one) for one in found]
    values: dict[str, object] = {"runs": [one.as_json() for one in found]}
    return {"lab-sustained": Output(show.TITLE, _COLUMNS, records, rows, paint, values, said)}


def _loads(found: Sequence[Measured], transport: str) -> list[int]:
    return sorted({one.cell.load for one in found if one.cell.transport == transport})


def _highest(found: Sequence[Measured], transport: str, where: str) -> Value:
    load = loads.highest(found, transport, where)
    return None if load is None else compare.exactly(load)


def _growths(found: Sequence[Measured], transport: str, title: str) -> list[compare.Row]:
    rows = []
    for load in _loads(found, transport):
        runs = [r for r in found if (r.cell.transport, r.cell.load) == (transport, load)]
        count_of = int(sum(r.facts["completed"] for r in runs))
        for where, name in (("lab", "real"), ("sim", "simulated")):
            verdict = loads.verdict(runs, where)
            grown = verdict.windows[-1]
            if grown:
                half = None if grown.half is None else 100 * grown.half
                n = count_of if where == "lab" else None
                grown = replace(grown, mean=100 * grown.mean, half=half, samples=n)
            what = f"{title}, {load} %, {name}: grows in the rest of the window ({verdict.words()})"
            rows.append(compare.info(what, None, grown, "%"))
    return rows


def _record(one: Measured) -> list[object]:
    grown = ["" if v is None else v for v in (*one.lab, *one.sim)]
    cell, facts = one.cell, one.facts
    return [
        cell.transport, cell.workload, cell.load, cell.seed, int(facts["completed"]), *grown,
        facts["drops"],
    ]  # fmt: skip


def _paint(found: Sequence[Measured], path: Path) -> None:
    """Growth by load with its interval, in both windows, and the limit."""
    from matplotlib.lines import Line2D

    colours = {"lab": draw.BLUE, "sim": draw.ORANGE}
    with draw.canvas(8.6, 4.2, 1, len(WINDOWS), sharey=True) as (figure, panels):
        figure.subplots_adjust(left=0.09, right=0.98, top=0.7, bottom=0.15, wspace=0.08)
        titles = ("first third of the window", "the rest")
        for number, panel in enumerate(panels[0]):
            draw.plain(panel)
            panel.axhline(100 * LIMIT, color=draw.GREY, linewidth=1.2, linestyle=(0, (3, 2)))
            _growth_curves(panel, found, number, colours)
            panel.set_title(titles[number], loc="left", fontsize=9, fontweight="bold")
            panel.set_xlabel("load on the wire, % of the links", fontsize=8.5)
        panels[0][0].set_ylabel("growth, % of what is offered")
        words = (
            "growth of what is under way beyond the oracle's, 95 % over seeds; dashes: the limit"
        )
        draw.headline(figure, show.TITLE, words, 0.09)
        handles = [Line2D([], [], color=c, marker="o", markersize=5) for c in colours.values()]
        draw.legend(figure, handles, ["real packets", "simulator"])
        draw_to(path, figure)


def _growth_curves(panel, found: Sequence[Measured], window: int, colours: dict[str, str]) -> None:  # noqa: ANN001
    for where, colour in colours.items():
        for transport in dict.fromkeys(one.cell.transport for one in found):
            points = []
            for load in _loads(found, transport):
                runs = [r for r in found if (r.cell.transport, r.cell.load) == (transport, load)]
                grown = loads.verdict(runs, where).windows[window]
                if grown:
                    points.append((load, 100 * grown.mean, 100 * (grown.half or 0.0)))
            if points:
                x, y, half = zip(*points, strict=True)
                shift = 0.15 if where == "sim" else -0.15
                panel.errorbar(
                    [one + shift for one in x], y, half, color=colour, marker="o", markersize=5,
                    capsize=3, linewidth=1.4, linestyle="-" if transport == "homa" else ":",
                )  # fmt: skip
            panel.set_xticks(_loads(found, transport))
