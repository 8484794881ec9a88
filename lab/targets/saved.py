# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Scoreboards that are kept: one file per `./homa targets --save` in docs/results, with the commit
and the machine, and what has moved since.

A scoreboard may have some rows only; a row is compared with the newest that has it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.machine import Machine
from lab.paths import ROOT
from lab.targets.goals import Outcome, Value, as_json

FOLDER = ROOT / "docs" / "results"
# Less is noise, also where a value is one run.
MOVED = 0.05


@dataclass(frozen=True)
class Before:
    """A row's value in a scoreboard: at which commit, when and where."""

    value: Value
    commit: str
    date: str
    cpu: str
    cores: int


@dataclass(frozen=True)
class Move:
    """A row now and before. `verdict`: "better", "worse", "same", "new" or "not measured"."""

    outcome: Outcome
    before: Before | None
    change: float | None
    verdict: str


def commit(root: Path = ROOT) -> str:
    """The commit that is checked out, with "-dirty" if files differ from it."""
    words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    words.append("--exclude=*")
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LabError(f"git cannot be run, so there is no commit to name: {error}") from None
    if done.returncode:
        raise LabError("this tree is no git repository: a scoreboard needs the commit's name")
    return done.stdout.strip()


def save(machine: Machine, outcomes: Sequence[Outcome], name: str, folder: Path = FOLDER) -> Path:
    """Keep what was measured of the commit `name`; a file is never overwritten."""
    measured = [o for o in outcomes if o.value]
    if not measured:
        raise LabError("nothing was measured, so there is nothing to save")
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{machine.date[:10]}-{name}"
    path, number = folder / f"{stem}.json", 2
    while path.exists():
        path, number = folder / f"{stem}-{number}.json", number + 1
    document = {"commit": name, **as_json(machine, list(outcomes))}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


def load(folder: Path = FOLDER) -> dict[str, Before]:
    """The newest value of every row; LabError names a file that is damaged."""
    documents = []
    for path in folder.glob("*.json"):
        try:
            document = json.loads(path.read_text())
            documents.append((str(document["machine"]["date"]), _rows(document)))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LabError(f"{path} is no saved scoreboard: {error}") from None
    found: dict[str, Before] = {}
    for _, rows in sorted(documents, key=lambda pair: pair[0]):
        found |= rows
    return found


def _rows(document: dict) -> dict[str, Before]:
    where = document["machine"]
    about = (str(document["commit"]), str(where["date"]), str(where["cpu"]), int(where["cores"]))
    return {
        str(row["name"]): Before(Value(**row["value"]), *about)
        for row in document["targets"]
        if row["value"]
    }


def moves(outcomes: Sequence[Outcome], before: dict[str, Before]) -> list[Move]:
    """What has become of every row."""
    return [_move(outcome, before.get(outcome.target.name)) for outcome in outcomes]


def _move(outcome: Outcome, before: Before | None) -> Move:
    now = outcome.value
    if now is None:
        return Move(outcome, before, None, "not measured")
    if before is None:
        return Move(outcome, None, None, "new")
    old = before.value
    difference = now.median - old.median
    change = difference / abs(old.median) if old.median else None
    if now.median == old.median or (change is not None and abs(change) <= MOVED):
        return Move(outcome, before, change, "same")
    # Rounds that overlap may be of the same distribution.
    if min(now.rounds, old.rounds) > 1 and now.low <= old.high and old.low <= now.high:
        return Move(outcome, before, change, "same")
    good = (difference < 0) == (outcome.target.better == "lower")
    return Move(outcome, before, change, "better" if good else "worse")


def elsewhere(found: Sequence[Move], machine: Machine) -> list[str]:
    """A line per machine, other than this one, that rows are compared with."""
    others: dict[tuple[str, int], list[str]] = {}
    for move in found:
        if move.before and (move.before.cpu, move.before.cores) != (machine.cpu, machine.cores):
            key = (move.before.cpu, move.before.cores)
            others.setdefault(key, []).append(move.outcome.target.name)
    return [
        f"measured on another machine ({cpu}, {cores} cores): {', '.join(names)}"
        for (cpu, cores), names in others.items()
    ]
