# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where results go, what is finished there, and what a finished item's file has beside its numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.cluster import stored_runs
from lab.errors import LabError, UsageError
from lab.paths import BUILD
from lab.reproduce import results
from lab.reproduce.items import Item
from lab.sim import program
from lab.sim.figures.base import Options
from lab.sim.store import write


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

    def key(self, item: Item) -> dict[str, object]:
        """What the file of `item` has to agree with; LabError if its programs are not built."""
        o = self.options
        build = stored_runs.build() if item.lab else self.build
        return {
            "build": build,
            "quick": o.quick,
            "seeds": results.seeds(item, o),
            "scale": o.scale,
        }

    def document(self, item: Item) -> dict | None:
        """A finished item's JSON, also of an older build; None if there is none of its definition."""
        found = results.load(self.file(item))
        if not found or results.foreign(found, item, self.options.quick):
            return None
        return found

    def finished(self, item: Item) -> bool:
        """Whether it has been made as it would be now."""
        found = self.document(item)
        if not found or not found.get("complete", True):
            return False
        try:
            return found.get("reproduce") == self.key(item)
        except LabError:
            return False

    def file(self, item: Item) -> Path:
        """Its JSON."""
        return self.folder / f"{item.name}.json"

    def keep(
        self, item: Item, files: Sequence[Path], origin: dict[str, object], complete: bool = True
    ) -> None:
        """Make a result of what a figure has written: `files`, among them the JSON."""
        document = json.loads(self.file(item).read_text())
        for name in ("where", *(("headers",) if item.lab else ())):
            del document[name]
        document |= {
            "schema": results.SCHEMA,
            "origin": origin,
            "reproduce": self.key(item),
            "complete": complete,
            "pictures": [f.name for f in files if f.suffix == ".svg"],
        }
        write(self.file(item), document)
        self.problem(item).unlink(missing_ok=True)

    def problem(self, item: Item) -> Path:
        """Says why it could not be made, if it could not."""
        return self.folder / f"{item.name}.problem"


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
