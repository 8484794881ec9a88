# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa lab run coexist` shows: a table per workload and RPC load, a summary, a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.cluster import common_text
from lab.cluster.setup import Setup
from lab.coexist import plot
from lab.coexist.grid import KINDS, Cell
from lab.coexist.measured import Measured, find
from lab.console import console, table
from lab.sim.published import published
from lab.sim.tails import LEAST
from lab.units import format_bytes, format_rate, format_ratio

TITLE = "RPCs beside streams of TCP (SNIA 2024)"
WITH_GOALS = {"homa": "", "homa-shared": ", by homad"}
NOISE = 40  # percent that streams ask for where this project has a goal


def begin(setup: Setup, cells: Sequence[Cell], full: Sequence[Cell], where: str) -> None:
    """Say what is going to be measured, and on what."""
    slower = f"{setup.dilate:g} times slower" if setup.dilate else "as much slower as needed"
    there = sum(1 for cell in cells if cell.published)
    what = [
        f"{TITLE}: {setup.hosts} hosts, {format_rate(setup.link_bps)} links made {slower}, MTU "
        f"{setup.mtu}, {setup.buffer:,} bytes of buffer per port, seed {setup.seed}",
    ]
    common_text.begin(
        what,
        [
            f"{len(cells)} runs, {there} of them in cells that the talk measured",
            f"{len(full)} cells are left out: their RPCs alone fill the links" if full else "",
            where,
        ],
    )


def one(result: Measured) -> None:
    """A line as soon as a cell is there."""
    cell = result.cell
    words = f"{cell.words()}: "
    if result.short:
        words += (
            f"short n {result.short.count:,}, P50 {common_text.us(result.short.p50_ns)}, P99 "
            f"{common_text.us(result.short.p99_ns)}; "
        )
    if cell.stream:
        words += f"streams carried {result.facts['streams_share']:.1%} of the links; "
    words += f"processors {result.facts['busy']:.0%} busy"
    common_text.run(words, result)


def percent(share: float | None) -> str:
    """A share as "12.3 %"."""
    return "–" if share is None else f"{share:.1%}"


def grids(results: Sequence[Measured]) -> None:
    """For each workload and RPC load: short RPCs and streams, then all RPCs by size."""
    out = console()
    pairs = dict.fromkeys((r.cell.workload, r.cell.rpc) for r in results if r.cell.rpc)
    for workload, rpc in pairs:
        mine = [r for r in results if (r.cell.workload, r.cell.rpc) == (workload, rpc)]
        facts = mine[0].facts
        title = (
            f"{workload.upper()}, RPCs {rpc} % of {format_rate(facts['link_bps'])} "
            f"({facts['dilation']:g} times slower); short: the smallest 20 %"
        )
        grid = table(
            title, "RPCs by", "streams\nask for", "short\nn", "\nP50", "\nP99", "P99\nsim",
            "slow-\ndown P99", "streams\ncarry", "lose", "must\nlose", "counts",
        )  # fmt: skip
        for r in mine:
            grid.add_row(*_row(r))
        out.print(grid)
        for name in ("p50", "p99"):
            out.print(_by_size(mine, name))


def _row(r: Measured) -> list[str]:
    assert r.short
    return [
        KINDS[r.cell.kind].brief,
        f"{r.cell.stream} %" if r.cell.stream else "–",
        f"{r.short.count:,}",
        common_text.us(r.short.p50_ns),
        common_text.us(r.short.p99_ns),
        common_text.us(r.sim_short.p99_ns) if r.sim_short else "–",
        format_ratio(r.short.slowdown_p99),
        percent(r.facts.get("streams_share")),
        percent(r.lost),
        percent(r.must_lose),
        "no" if r.doubts else "yes",
    ]


def _by_size(mine: Sequence[Measured], name: str):  # noqa: ANN202 (rich is imported late)
    """A percentile of each tenth's round trips, alone and beside the most streams, by each kind."""
    columns: list[Measured] = []
    for kind in dict.fromkeys(r.cell.kind for r in mine):
        some = [r for r in mine if r.cell.kind == kind]
        columns += [some[0], some[-1]] if len(some) > 1 else some
    heads = [
        f"{KINDS[r.cell.kind].brief}\n" + (f"+ {r.cell.stream} %" if r.cell.stream else "alone")
        for r in columns
    ]
    title = f"all RPCs: {name.upper()} of the round trip, alone and beside the most streams"
    grid = table(title, "bytes", "n", *heads)
    for number, tenth in enumerate(columns[0].tenths):
        low, high = format_bytes(tenth.size_low), format_bytes(tenth.size_high)
        grid.add_row(
            low if low == high else f"{low} – {high}",
            f"{min(r.tenths[number].count for r in columns):,}",
            *(common_text.us(getattr(r.tenths[number], f"{name}_ns")) for r in columns),
        )
    return grid


def summary(results: Sequence[Measured]) -> list[dict[str, object]]:
    """What this project asks of itself, for each workload and RPC load; None of runs that do not
    count."""
    goals = published()["goals"]
    found: list[dict[str, object]] = []
    for r in results:
        cell = r.cell
        if cell.kind not in WITH_GOALS or not cell.rpc or not cell.stream:
            continue
        name = f"{cell.workload.upper()} {cell.rpc} %, streams {cell.stream} %"
        name += WITH_GOALS[cell.kind]
        if cell.stream == NOISE:
            alone = find(results, cell.workload, cell.kind, cell.rpc, 0)
            found.append({
                "what": f"{name}: short P99 of Homa to the same without streams",
                "value": _ratio(r, alone),
                "goal": goals["coexist_short"],
            })  # fmt: skip
        tcp = find(results, cell.workload, "tcp", cell.rpc, cell.stream)
        found.append({
            "what": f"{name}: short P99 of TCP RPCs to Homa",
            "value": _ratio(tcp, r),
            "goal": None,
        })  # fmt: skip
        over = None
        if r.lost is not None and r.must_lose is not None and not r.doubts:
            over = r.lost - r.must_lose
        found.append({
            "what": f"{name}: share that streams lose beyond what they must",
            "value": over,
            "goal": goals["coexist_lost"],
        })  # fmt: skip
    return found


def worst(results: Sequence[Measured]) -> dict[str, dict[str, float | None]]:
    """For the scoreboard, for each kind that has goals: the greatest `short` and `lost` of all its
    rows in summary(); None if a run that is needed for it does not count."""
    found: dict[str, dict[str, float | None]] = {}
    for kind in WITH_GOALS:
        rows = summary([r for r in results if r.cell.kind == kind])
        values = {
            "short": [row["value"] for row in rows if row["goal"] and "P99" in str(row["what"])],
            "lost": [row["value"] for row in rows if row["goal"] and "lose" in str(row["what"])],
        }
        found[kind] = {
            name: None if not some or None in some else max(some)  # type: ignore[type-var]
            for name, some in values.items()
        }
    return found


def _ratio(one: Measured | None, other: Measured | None) -> float | None:
    """Of the short RPCs' P99, if both count."""
    if not one or not other or one.doubts or other.doubts or not one.short or not other.short:
        return None
    a, b = one.short.p99_ns, other.short.p99_ns
    return a / b if a is not None and b else None


def end(setup: Setup, results: list[Measured], json_file: Path | None, figure: Path | None) -> None:
    """The tables, the summary, the figure and the file."""
    out = console()
    grids(results)
    rows = summary(results)
    grid = table("only of runs that count", "", "here", "goal")
    for row in rows:
        goal = "–" if row["goal"] is None else f"≤ {row['goal']:g}"
        value = row["value"]
        grid.add_row(str(row["what"]), "–" if value is None else f"{value:.2f}", goal)
    if rows:
        out.print(grid)
    out.print("The talk's slides print which cells were measured and no number of their results.")
    few = sum(1 for r in results for t in r.tenths if t.count < LEAST)
    if few:
        out.print(f"– : fewer than {LEAST:,} messages ({few} tenths); --messages for more")
    common_text.refused(results)
    if figure:
        plot.paint(TITLE, results, figure)
        out.print(f"Figure: {figure}", markup=False)
    document: dict[str, object] = {
        "source": published()["snia"]["source"],
        "summary": rows,
        "goals": worst(results),
        "cells": [r.as_json() for r in results],
    }
    common_text.save(json_file, "lab-run coexist", setup, document)
