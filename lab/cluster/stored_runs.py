# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs of `./homa lab run` on disk, so that the same command goes on where it was stopped.

A run that counts has a file, named by what was measured, on which links, with which programs. Runs
that do not count have none: the next command measures them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lab import provenance
from lab.cluster.setup import Setup
from lab.errors import UsageError
from lab.net import homad
from lab.paths import BUILD, ROOT, homa_bench, homa_flows
from lab.sim import program
from lab.sim.store import write

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


# What makes the network, its programs and their simulation.
_CODE = ("net", "cluster", "coexist", "incast", "failures", "sustained", "inventory")


class Doubtful(Protocol):
    """A run that may not count."""

    @property
    def doubts(self) -> list[str]:
        """Why it does not."""
        ...

    def as_json(self) -> dict[str, Any]:
        """For its file."""
        ...


Run = TypeVar("Run", bound=Doubtful)


def usual(name: str, quick: bool) -> Path | None:
    """Where runs of an experiment are kept unless the command line says it: only long ones are."""
    return None if quick else BUILD / "lab-run" / name


@dataclass(frozen=True)
class Kept:
    """Runs of `setup` in `folder` (None: nothing is kept) by the programs of `build`."""

    folder: Path | None
    setup: Setup
    build: str

    def file(self, what: object) -> Path:
        """Where the run of `what` (JSON) is or will be."""
        assert self.folder
        text = json.dumps([what, asdict(self.setup), self.build], sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def get(self, what: object) -> dict | None:
        """The result of `what`; a damaged file counts as none."""
        if not self.folder:
            return None
        try:
            found = json.loads(self.file(what).read_text())
        except (OSError, ValueError):
            return None
        result = found.get("result") if isinstance(found, dict) else None
        return result if isinstance(result, dict) else None

    def put(self, what: object, result: dict) -> None:
        """Keep a run."""
        if self.folder:
            document = {"run": what, "setup": asdict(self.setup), "build": self.build}
            write(self.file(what), {**document, "where": provenance.here(), "result": result})

    def run(
        self, cell: DataclassInstance, link_bps: int, old: Callable[[dict], Run],
        new: Callable[[], Run],
    ) -> Run:  # fmt: skip
        """The run of a cell on links of this rate: that which is kept, made of its file by `old`, or
        a `new` one, which is kept if it counts."""
        what = {"cell": asdict(cell), "link_bps": link_bps}
        known = self.get(what)
        if known:
            return old(known)
        found = new()
        if not found.doubts:
            self.put(what, found.as_json())
        return found

    def words(self) -> str:
        """A line for people; "" if nothing is kept."""
        where = f"runs that count are kept in {self.folder}; the same command goes on there"
        return where if self.folder else ""


def open_folder(folder: Path | None, setup: Setup) -> Kept:
    """`folder`, made if need be, for runs of the programs as they are now."""
    if not folder:
        return Kept(None, setup, "")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the folder {folder}: {error.strerror}; give another with --keep"
        ) from None
    return Kept(folder, setup, build())


def build() -> str:
    """What identifies the programs that a run is made of, and the network: their contents."""
    found = hashlib.sha256()
    parts = [one() for one in (homa_bench, homa_flows, homad.program, program.path)]
    # By which unmodified programs have their TCP through homad.
    for one in [*parts, *(path for path in (homad.preload(),) if path.exists())]:
        found.update(hashlib.sha256(one.read_bytes()).digest())
    # And the network that they run in, and how.
    for one in sorted(path for name in _CODE for path in (ROOT / "lab" / name).glob("*.[cp]*")):
        if one.is_file():
            found.update(hashlib.sha256(one.read_bytes()).digest())
    return found.hexdigest()[:16]
