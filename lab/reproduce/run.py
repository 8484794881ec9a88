# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Makes what is missing of some items; the page is written after each, so it can be read meanwhile.

Everything is resumable: a finished run is a file (lab.sim.store), a finished item is a JSON that says
of which build, length and seeds it is. What failed is said on the page and at the end, and is made
again by the same command.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from lab import provenance
from lab.console import console, table
from lab.errors import LabError, UsageError
from lab.paths import BUILD
from lab.reproduce import markdown, page
from lab.reproduce.items import ITEMS, Item
from lab.sim import figures, program
from lab.sim.figures import base
from lab.sim.figures.base import Options
from lab.sim.pool import Lab, Local
from lab.sim.progress import clock
from lab.sim.store import Store, write


@dataclass(frozen=True)
class Place:
    """Where results go: one folder for quick runs, one for full ones."""

    folder: Path
    options: Options
    build: str

    def key(self) -> dict[str, object]:
        """What a finished item has to agree with."""
        o = self.options
        return {"build": self.build, "quick": o.quick, "seeds": o.seed_list(), "scale": o.scale}

    def document(self, item: Item) -> dict | None:
        """A finished item's JSON, also of an older build; None if there is none."""
        try:
            found = json.loads((self.folder / f"{item.figure}.json").read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "reproduce" in found else None

    def finished(self, item: Item) -> bool:
        """Whether it has been made as it would be now."""
        found = self.document(item)
        return bool(found) and found["reproduce"] == self.key()


def place(options: Options, folder: Path | None) -> Place:
    """The default is a folder of the build."""
    name = "quick" if options.quick else "night"
    where = folder or BUILD / "reproduce" / name
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the folder {where}: {error.strerror}; give another with --out"
        ) from None
    return Place(where, options, program.build())


def show_list(where: Place) -> None:
    """What there is and what is done."""
    grid = table("what the papers show", "name", "where", "what", "status", left=4)
    for item in ITEMS:
        status = "done" if item.figure and where.finished(item) else "to do"
        if not item.figure:
            status = "own command" if item.command else "no command"
        grid.add_row(item.name, item.place, item.title, status)
    console().print(grid)


def main(chosen: list[Item], where: Place, jobs: int) -> None:
    """Make `chosen` and write the pages."""
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
    if failed:
        raise LabError(f"could not be made: {', '.join(failed)}; the same command tries them again")


def _make(item: Item, where: Place, jobs: int) -> None:
    figure = figures.FIGURES[item.figure]
    lab = Lab(Store(where.folder / "runs", where.build), Local(jobs), item.name)
    output = figure.compute(lab, where.options)
    if lab.problems:
        raise LabError(f"{len(lab.problems)} runs failed, the first: {lab.problems[0]}")
    files = base.deliver(figure, output, where.options, where.folder)
    path = where.folder / f"{item.figure}.json"
    pictures = [f.name for f in files if f.suffix == ".svg"]
    document = json.loads(path.read_text())
    document |= {"reproduce": where.key(), "pictures": pictures}
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
