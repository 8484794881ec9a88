# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The scoreboard: the goals of `bench/targets.toml` against what this machine measures.

A row names a command and the place of one value in the JSON that it writes. A value is a
number, a list of numbers (one per round) or an object with median, min and max. Commands
that several rows share run once. The scoreboard informs people; no test reads it.
"""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import LabError, UsageError
from lab.machine import Machine
from lab.paths import BUILD, ROOT

TARGETS_FILE = ROOT / "bench" / "targets.toml"
JSON_ARGUMENT = "{json}"
BUILD_FOLDER = "{build}"
PYTHON = "{python}"
TEMPORARY_FOLDER = "{temporary}"
_KEYS = {"name": str, "command": str, "path": str, "goal": (int, float), "better": str, "why": str}


@dataclass(frozen=True)
class Target:
    """One row of the file; `goal` is met by a median at least as good."""

    name: str
    command: str
    path: str
    goal: float
    better: str
    why: str

    def met_by(self, value: float) -> bool:
        """Whether `value` reaches the goal."""
        return value <= self.goal if self.better == "lower" else value >= self.goal


@dataclass(frozen=True)
class Value:
    """What a command measured, over `rounds` rounds."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Outcome:
    """A target and its value, or the one-line reason why there is none."""

    target: Target
    value: Value | None
    problem: str = ""

    @property
    def met(self) -> bool:
        """Whether the goal is reached; a missing value does not reach it."""
        return self.value is not None and self.target.met_by(self.value.median)

    def as_json(self) -> dict[str, object]:
        """For a result file."""
        value = asdict(self.value) if self.value else None
        return {**asdict(self.target), "value": value, "met": self.met, "problem": self.problem}


def load_targets(path: Path = TARGETS_FILE) -> list[Target]:
    """The rows of `path`, checked; UsageError names the row and the key that are wrong."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    unknown = sorted(set(data) - {"target"})
    if unknown:
        raise UsageError(f"{path}: unknown key '{unknown[0]}'; rows are [[target]] tables")
    rows = data.get("target", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not rows:
        raise UsageError(f"{path}: no rows; each target is a [[target]] table")
    targets = [_check_row(path, number, row) for number, row in enumerate(rows, 1)]
    names = [target.name for target in targets]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path}: two targets are called '{name}'; give one another name")
    return targets


def _check_row(path: Path, number: int, row: dict[str, object]) -> Target:
    where = f"{path}: target {row.get('name', number)}"
    for key in row:
        if key not in _KEYS:
            raise UsageError(f"{where}: unknown key '{key}'; known are {', '.join(_KEYS)}")
    for key, kind in _KEYS.items():
        if key not in row:
            raise UsageError(f"{where}: '{key}' is missing")
        if not isinstance(row[key], kind) or isinstance(row[key], bool):
            raise UsageError(f"{where}: '{key}' has the wrong type")
    if row["better"] not in ("lower", "higher"):
        raise UsageError(f'{where}: better is \'{row["better"]}\'; write "lower" or "higher"')
    if JSON_ARGUMENT not in str(row["command"]):
        raise UsageError(
            f"{where}: the command does not say where its JSON goes; put {JSON_ARGUMENT} there"
        )
    return Target(**{**row, "goal": float(row["goal"])})  # type: ignore[arg-type]


def choose(targets: list[Target], names: list[str]) -> list[Target]:
    """The targets called `names`, or all of them; a name may end in * for a group."""
    if not names:
        return targets
    chosen: list[Target] = []
    for name in names:
        found = [
            t
            for t in targets
            if t.name == name or (name.endswith("*") and t.name.startswith(name[:-1]))
        ]
        if not found:
            raise UsageError(f"no target is called '{name}'; ./homa targets --list shows them")
        chosen += [t for t in found if t not in chosen]
    return chosen


def at(document: object, path: str) -> object:
    """What stands at the dotted `path` (list elements by number) of a command's JSON.

    A name in it may have dots itself, as those of cases of `./homa bench tas` do.
    """
    place, steps = document, path.split(".")
    while steps:
        names = (".".join(steps[:count]) for count in range(len(steps), 0, -1))
        step = next((n for n in names if isinstance(place, dict) and n in place), steps[0])
        if isinstance(place, dict) and step in place:
            place = place[step]
        elif isinstance(place, list) and step.isdigit() and int(step) < len(place):
            place = place[int(step)]
        else:
            raise LabError(f"its JSON has no '{path}' ('{step}' is missing)")
        steps = steps[step.count(".") + 1 :]
    return place


def find_value(document: object, path: str) -> Value:
    """The value at `path`, see at()."""
    place = at(document, path)
    if _is_number(place):
        return Value(float(place), float(place), float(place), 1)
    if isinstance(place, list) and place and all(map(_is_number, place)):
        return Value(statistics.median(place), min(place), max(place), len(place))
    if isinstance(place, dict) and all(
        _is_number(place.get(key)) for key in ("median", "min", "max")
    ):
        rounds = place.get("rounds", 1)
        count = len(rounds) if isinstance(rounds, list) else int(rounds)
        return Value(place["median"], place["min"], place["max"], count)
    raise LabError(
        f"'{path}' in its JSON is not a number, a list of numbers or median, min and max"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def run_command(command: str, root: Path = ROOT) -> object:
    """Run `command` in `root` and give the JSON it wrote; LabError says why not."""
    with tempfile.TemporaryDirectory(prefix="homa-targets-") as folder:
        out = Path(folder) / "result.json"
        words = [out.as_posix() if word == JSON_ARGUMENT else word for word in shlex.split(command)]
        argv = [
            word.replace(BUILD_FOLDER, str(BUILD))
            .replace(PYTHON, sys.executable)
            .replace(TEMPORARY_FOLDER, folder)
            for word in words
        ]
        try:
            done = subprocess.run(
                argv, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise LabError(
                f"'{argv[0]}' cannot be run: {error.strerror}; run ./homa build first"
            ) from None
        # A result with a bad status counts: a fuzzer that found something says so both ways.
        if not out.exists():
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise LabError(f"'{command.replace(JSON_ARGUMENT, 'FILE')}' failed: {lines[-1]}")
        try:
            return json.loads(out.read_text())
        except ValueError as error:
            raise LabError(f"'{command}' wrote no JSON: {error}") from None


def measure(
    targets: list[Target],
    execute: Callable[[str], object] = run_command,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
) -> list[Outcome]:
    """Run what `targets` need, each distinct command once, in the order of the file."""
    results: dict[str, object] = {}
    for command in dict.fromkeys(target.command for target in targets):
        say(f"running {command.replace(JSON_ARGUMENT, 'FILE')}")
        try:
            results[command] = execute(command)
        except LabError as error:
            results[command] = error
    outcomes = []
    for target in targets:
        result = results[target.command]
        try:
            if isinstance(result, LabError):
                raise result
            outcomes.append(Outcome(target, find_value(result, target.path)))
        except LabError as error:
            outcomes.append(Outcome(target, None, str(error)))
    return outcomes


def as_json(machine: Machine, outcomes: list[Outcome]) -> dict[str, object]:
    """The scoreboard as a document."""
    return {"machine": machine.as_json(), "targets": [outcome.as_json() for outcome in outcomes]}
