# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa lab run failures` shows: a line per run, two tables per transport, a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.cluster import common_text
from lab.cluster.real_and_simulated import divided
from lab.cluster.points import TITLES
from lab.cluster.setup import Setup
from lab.console import console, table
from lab.failures import faults
from lab.failures.faults import FAULTS, Cell
from lab.failures.measured import Fates, Measured
from lab.sim.tails import LEAST
from lab.units import format_rate, format_ratio

TITLE = "Failures: what RPCs see when a host, a link or a buffer fails"


def begin(setup: Setup, cells: Sequence[Cell], where: str) -> None:
    """Say what is going to be measured, and on what."""
    rate, dilation = faults.rate(setup, cells)
    when = faults.times(setup, cells[0], rate)
    what = [
        f"{TITLE}: {setup.hosts} hosts, {format_rate(rate)} links ({dilation:g} times slower than "
        f"{format_rate(setup.link_bps)}), {cells[0].workload.upper()} at {cells[0].rpc} %, seed "
        f"{setup.seed}",
        f"windows of {when.window:g} s; something happens after {when.fails:g} s to the last host: "
        f"it is gone, or its link is down for {faults.DOWN * when.gives_up:g} s; or each port holds "
        f"{faults.SMALL_PACKETS * setup.mtu:,} bytes instead of {setup.buffer:,}",
        f"Homa gives an RPC up after {when.gives_up:g} s; for TCP the program does",
    ]
    common_text.begin(what, [where])


def one(result: Measured) -> None:
    """A line as soon as a run is there."""
    others, apart = result.others, result.concerned
    common_text.run(
        f"{result.cell.words()}: others n {others.count:,}, {others.failed:,} failed, short P99 "
        f"{common_text.us(others.short['p99'])}; with the last host {apart.completed:,} came, "
        f"{apart.failed:,} failed{_how(apart)}; processors {result.facts['busy']:.0%} busy",
        result,
    )


def _how(fates: Fates) -> str:
    kinds = ", ".join(f"{name} {n:,}" for name, n in fates.errors.items())
    return f" ({kinds})" if kinds else ""


def _others(transport: str, mine: Sequence[Measured]):  # noqa: ANN202 (rich is imported late)
    grid = table(
        f"{TITLES[transport]}: RPCs between the other hosts", "what fails", "n", "failed\nlab, sim",
        "wrong", "short\nn", "P99\nlab", "\nsim", "sim /\nlab", "drops\nlab, sim", "counts",
    )  # fmt: skip
    for r in mine:
        lab, sim = r.others, r.sim_others
        grid.add_row(
            FAULTS[r.cell.fault],
            f"{lab.count:,}",
            f"{lab.failed:,}, {sim.failed:,}",
            f"{lab.wrong:,}",
            f"{lab.short_count:,}",
            common_text.us(lab.short["p99"]),
            common_text.us(sim.short["p99"]),
            format_ratio(divided(sim.short["p99"], lab.short["p99"])),
            f"{r.facts['drops']:,.0f}, {r.facts['sim_drops']:,.0f}",
            "no" if r.doubts else "yes",
        )
    return grid


def _concerned(transport: str, mine: Sequence[Measured]):  # noqa: ANN202
    heads = ("came", "longest\ns", "failed", "after s")
    grid = table(
        f"{TITLES[transport]}: RPCs to the last host, and simulated to and from it", "what fails",
        *(f"lab:\n{heads[0]}", *heads[1:]), *(f"sim:\n{heads[0]}", *heads[1:]),
    )  # fmt: skip
    for r in mine:
        cells = []
        for fates in (r.concerned, r.sim_concerned):
            longest = "–" if fates.longest is None else f"{fates.longest:.2f}"
            cells += [f"{fates.completed:,}", longest, f"{fates.failed:,}", _ages(fates)]
        grid.add_row(FAULTS[r.cell.fault], *cells)
    return grid


def _ages(fates: Fates) -> str:
    if fates.error_first is None or fates.error_last is None:
        return "–"
    first, last = f"{fates.error_first:.2f}", f"{fates.error_last:.2f}"
    return first if first == last else f"{first} – {last}"


def summary(results: Sequence[Measured]) -> list[dict[str, object]]:
    """What the others felt: short P99 to that without a fault, of runs that count; and how many of
    their RPCs failed or had wrong bytes, of all."""
    found: list[dict[str, object]] = []
    calm = {r.cell.transport: r for r in results if r.cell.fault == "none"}
    for r in results:
        base = calm.get(r.cell.transport)
        if r.cell.fault == "none" or not base:
            continue
        counts = not r.doubts and not base.doubts
        found.append({
            "what": f"{TITLES[r.cell.transport]}, {FAULTS[r.cell.fault]}",
            "short_p99_ratio": divided(r.others.short["p99"], base.others.short["p99"])
            if counts
            else None,
            "sim": divided(r.sim_others.short["p99"], base.sim_others.short["p99"]),
            "failed": r.others.failed,
            "wrong": r.others.wrong,
        })  # fmt: skip
    return found


def unjust(results: Sequence[Measured]) -> int | None:
    """For the scoreboard: Homa's RPCs that failed or had wrong bytes although nothing happened to
    their hosts, or to a link for long; None if there was no run."""
    mine = [r for r in results if r.cell.transport == "homa"]
    lost = sum(r.concerned.failed for r in mine if r.cell.fault != "kill")
    return lost + sum(r.others.failed + r.others.wrong for r in mine) if mine else None


def end(setup: Setup, results: list[Measured], json_file: Path | None) -> None:
    """The tables, the summary and the file."""
    out = console()
    for transport in dict.fromkeys(r.cell.transport for r in results):
        mine = [r for r in results if r.cell.transport == transport]
        out.print(_others(transport, mine))
        out.print(_concerned(transport, mine))
    rows = summary(results)
    if rows:
        title = "others' short P99 to that without a fault (lab: of runs that count)"
        grid = table(title, "", "lab", "sim", "failed", "wrong")
        for row in rows:
            ratios = (row["short_p99_ratio"], row["sim"])
            grid.add_row(
                str(row["what"]), *(format_ratio(v) for v in ratios),  # type: ignore[arg-type]
                str(row["failed"]), str(row["wrong"]),
            )  # fmt: skip
        out.print(grid)
    few = sum(1 for r in results if r.others.short_count < LEAST)
    if few:
        out.print(f"– : fewer than {LEAST:,} short RPCs ({few} runs); --messages for more")
    common_text.refused(results)
    document: dict[str, object] = {
        "summary": rows,
        "goals": {"unjust": unjust(results)},
        "runs": [r.as_json() for r in results],
    }
    common_text.save(json_file, "lab-run failures", setup, document)
