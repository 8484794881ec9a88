# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Makes what is missing of some items; the page is written after each, so it can be read meanwhile.

Everything is resumable: a finished run is a file (lab.sim.store), a finished item is a JSON that says
of which build, length and seeds it is. What failed is said on the page and at the end, and is made
again by the same command.
"""

from __future__ import annotations

import time
from dataclasses import replace

from lab import provenance
from lab.console import console, table
from lab.errors import LabError
from lab.reproduce import markdown, page, results
from lab.reproduce.chosen import NEED_ROOT, together
from lab.reproduce.items import ITEMS, Item
from lab.reproduce.place import Place
from lab.reproduce.real import make
from lab.sim import figures
from lab.sim.figures import base
from lab.sim.figures.base import Options
from lab.sim.pool import Lab, Local
from lab.sim.progress import clock
from lab.sim.store import Store


def show_list(where: Place) -> None:
    """What there is and what is done."""
    grid = table("what the papers show", "name", "where", "what", "status", left=4)
    for item in ITEMS:
        status = "done" if item.made and where.finished(item) else "to do"
        if item.lab and status != "done":
            status = "to do, as root"
        if not item.made:
            status = "own command" if item.command else "no command"
        grid.add_row(item.name, item.place, item.title, status)
    console().print(grid)


def main(chosen: list[Item], where: Place, jobs: int, left_out: bool = False) -> list[str]:
    """Make `chosen` and write the pages; the names of those that could not be made.

    `left_out`: items of real packets are not among them, for want of root.
    """
    out = console()
    if left_out:
        out.print(f"{NEED_ROOT}: items of them are left out", markup=False)
    todo = [item for item in chosen if item.made and not where.finished(item)]
    units = together(todo)
    expected = [seconds(unit, where.options) for unit in units]
    began, done, failed = time.monotonic(), 0.0, []
    for number, (unit, takes) in enumerate(zip(units, expected, strict=True), 1):
        spent = time.monotonic() - began
        pace = spent / done if done else 1.0
        left = (sum(expected) - done) * pace
        names = ", ".join(item.name for item in unit)
        out.print(
            f"{names} ({number} of {len(units)}): {clock(spent)} passed, about {clock(left)} left",
            markup=False,
        )
        try:
            _make(unit, where, jobs)
        except LabError as error:
            failed += [item.name for item in unit]
            out.print(f"{names}: {error}", markup=False)
            for item in unit:
                where.problem(item).write_text(f"{error}\n")
        done += takes
        show(where, left_out)
    show(where, left_out)
    out.print(f"{len(chosen)} items, {len(todo) - len(failed)} made now", markup=False)
    out.print(f"wrote {where.folder / 'index.html'} and results.md", markup=False)
    return failed


def seconds(unit: list[Item], options: Options) -> float:
    """About how long items that are made at once take."""
    usual = replace(options, seeds=0)
    parts = (len(results.seeds(i, options)) / len(results.seeds(i, usual)) for i in unit)
    return 60 * max(
        item.minutes[0 if options.quick else 1] * part
        for item, part in zip(unit, parts, strict=True)
    )


def _make(unit: list[Item], where: Place, jobs: int) -> None:
    if unit[0].lab:
        make.make(unit[0].lab, where)
    else:
        _simulate(unit[0], where, jobs)


def _simulate(item: Item, where: Place, jobs: int) -> None:
    figure = figures.FIGURES[item.figure]
    if where.only_finished and not figure.partial:
        raise LabError("it cannot be made in part; leave --finished out")
    lab = Lab(Store(where.folder / "runs", where.build), Local(jobs), item.name)
    lab.only_finished = where.only_finished
    output = figure.compute(lab, where.options)
    if lab.problems:
        raise LabError(f"{len(lab.problems)} runs failed, the first: {lab.problems[0]}")
    if not lab.fresh and not lab.found:
        raise LabError("none of its runs is finished yet")
    files = base.deliver(figure, output, where.options, where.folder)
    origin = results.origin(item, where.options, where.simulator)
    where.keep(item, files, origin, complete=not lab.missing)


def show(where: Place, left_out: bool = False) -> None:
    """Write both pages from what there is; `left_out`: real packets, for want of root."""
    entries = []
    for item in ITEMS:
        document = where.document(item) if item.made else None
        problem = where.problem(item)
        entries.append(
            page.Entry(
                item,
                document,
                current=bool(document) and where.finished(item),
                problem=problem.read_text().strip() if problem.exists() else "",
                left_out=NEED_ROOT if left_out and item.lab else "",
            )
        )
    head = page.Head(where.options.quick, where.options.words(), provenance.here())
    try:
        (where.folder / "index.html").write_text(page.render(head, entries, where.folder))
        (where.folder / "results.md").write_text(markdown.render(head, entries))
    except OSError as error:
        raise LabError(f"cannot write into {where.folder}: {error.strerror}") from None
