# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Makes what is missing of some items; the page is written after each, so it can be read meanwhile.

Everything is resumable: a finished run is a file (lab.sim.store), a finished item is a JSON that says
of which build, length and seeds it is. What failed is said on the page and at the end, and is made
again by the same command.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab import provenance
from lab.console import console, table
from lab.errors import LabError, UsageError
from lab.paths import BUILD
from lab.reproduce import markdown, page, results
from lab.reproduce.items import ITEMS, Item
from lab.sim import figures, program
from lab.sim.figures import base
from lab.sim.figures.base import Options
from lab.sim.pool import Lab, Local
from lab.sim.progress import clock
from lab.sim.store import Store, write


@dataclass(frozen=True)
class Place:
    """Where results go: one folder for quick runs, one for full ones.

    `simulator`: what is known of the program that makes them. `only_finished`: no run is made.
    """

    folder: Path
    options: Options
    build: str
    simulator: dict[str, object] = field(default_factory=dict)
    only_finished: bool = False

    def key(self) -> dict[str, object]:
        """What a finished item has to agree with."""
        o = self.options
        return {"build": self.build, "quick": o.quick, "seeds": o.seed_list(), "scale": o.scale}

    def document(self, item: Item) -> dict | None:
        """A finished item's JSON, also of an older build; None if there is none of its definition."""
        found = results.load(self.folder / f"{item.figure}.json")
        if not found or results.foreign(found, item, self.options.quick):
            return None
        return found

    def finished(self, item: Item) -> bool:
        """Whether it has been made as it would be now."""
        found = self.document(item)
        return bool(found) and found.get("reproduce") == self.key() and found.get("complete", True)


def folder_of(options: Options, folder: Path | None) -> Path:
    """`folder`, or one of the build; it is made."""
    name = "quick" if options.quick else "night"
    where = folder or BUILD / "reproduce" / name
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the folder {where}: {error.strerror}; give another with --out"
        ) from None
    return where


def place(
    options: Options,
    folder: Path | None,
    simulator: dict[str, object] | None = None,
    only_finished: bool = False,
) -> Place:
    """The default is a folder of the build, and its simulator."""
    where, build = folder_of(options, folder), program.build()
    return Place(where, options, build, simulator or results.simulator(build), only_finished)


def show_list(where: Place) -> None:
    """What there is and what is done."""
    grid = table("what the papers show", "name", "where", "what", "status", left=4)
    for item in ITEMS:
        status = "done" if item.figure and where.finished(item) else "to do"
        if not item.figure:
            status = "own command" if item.command else "no command"
        grid.add_row(item.name, item.place, item.title, status)
    console().print(grid)


def main(chosen: list[Item], where: Place, jobs: int) -> list[str]:
    """Make `chosen` and write the pages; the names of those that could not be made."""
    out = console()
    todo = [item for item in chosen if item.figure and not where.finished(item)]
    index = 0 if where.options.quick else 1
    expected = sum(item.minutes[index] for item in todo) * 60
    began, done, failed = time.monotonic(), 0.0, []
    for number, item in enumerate(todo, 1):
        spent = time.monotonic() - began
        pace = spent / done if done else 1.0
        left = (expected - done) * pace
        out.print(
            f"{item.name} ({number} of {len(todo)}): {clock(spent)} passed, about {clock(left)} left",
            markup=False,
        )
        try:
            _make(item, where, jobs)
        except LabError as error:
            failed.append(item.name)
            out.print(f"{item.name}: {error}", markup=False)
            _note(where, item, str(error))
        done += item.minutes[index] * 60
        show(where)
    show(where)
    out.print(f"{len(chosen)} items, {len(todo) - len(failed)} made now", markup=False)
    out.print(f"wrote {where.folder / 'index.html'} and results.md", markup=False)
    return failed


def _make(item: Item, where: Place, jobs: int) -> None:
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
    path = where.folder / f"{item.figure}.json"
    pictures = [f.name for f in files if f.suffix == ".svg"]
    document = json.loads(path.read_text())
    del document["where"]
    document |= {
        "schema": results.SCHEMA,
        "origin": results.origin(item, where.options, where.simulator),
        "reproduce": where.key(),
        "complete": not lab.missing,
        "pictures": pictures,
    }
    write(path, document)
    _problem(where, item).unlink(missing_ok=True)


def _problem(where: Place, item: Item) -> Path:
    return where.folder / f"{item.name}.problem"


def _note(where: Place, item: Item, text: str) -> None:
    _problem(where, item).write_text(text + "\n")


def show(where: Place) -> None:
    """Write both pages from what there is."""
    entries = []
    for item in ITEMS:
        document = where.document(item) if item.figure else None
        problem = _problem(where, item)
        entries.append(
            page.Entry(
                item,
                document,
                current=bool(document) and where.finished(item),
                problem=problem.read_text().strip() if problem.exists() else "",
            )
        )
    head = page.Head(where.options.quick, where.options.words(), provenance.here())
    try:
        (where.folder / "index.html").write_text(page.render(head, entries, where.folder))
        (where.folder / "results.md").write_text(markdown.render(head, entries))
    except OSError as error:
        raise LabError(f"cannot write into {where.folder}: {error.strerror}") from None
