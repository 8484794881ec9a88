# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa sim sweep SPEC.toml`: every combination of some flags, several seeds each.

    name = "loads"                        # names the results' folder
    seeds = 3                             # or a list: [1, 2, 7]
    [run]                                 # flags that all runs share
    workload = "w3"
    measure = "20ms"
    [run.set]                             # settings of the protocol
    fifo_fraction = 0
    [grid]                                # flags that vary, each a list
    protocol = ["homa", "pfabric"]
    load = [0.5, 0.8]
    [grid.set]
    max_overcommit = [1, 7]

Every run is a process and a file (store.py). An interrupted sweep is continued by giving the same
command again; runs that a changed file does not have any more are left where they are.
"""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from lab.console import table
from lab.errors import LabError, UsageError
from lab.sim import spec as specs
from lab.sim import tomlfile
from lab.sim.flags import FLAGS, check
from lab.sim.spec import Spec

MAX_RUNS = 100_000
_KEYS = ["name", "seeds", "run", "grid"]


@dataclass(frozen=True)
class Sweep:
    """A grid: `varied` names its axes ("load", "set.max_overcommit"), `runs` are all of it."""

    name: str
    varied: list[str]
    seeds: list[int]
    runs: list[Spec]


def load(path: Path) -> Sweep:
    """The sweep in `path`; UsageError has file, line and reason."""
    doc = tomlfile.load(path)
    doc.only(doc.data, (), _KEYS)
    name = doc.data.get("name", path.stem)
    if not isinstance(name, str) or not name or set(name) & set("/\\ \0") or name[0] == ".":
        raise doc.wrong(("name",), "name has to be text that can name a folder")
    fixed = _fixed(doc)
    axes = _axes(doc, fixed)
    seeds = _seeds(doc)
    count = len(seeds)
    for _, values in axes:
        count *= len(values)
    if count > MAX_RUNS:
        raise doc.wrong(
            ("grid",), f"these are {count:,} runs; more than {MAX_RUNS:,} are a mistake"
        )
    runs = []
    for choice in itertools.product(*(values for _, values in axes)):
        point: Spec = {}
        for (axis, _), value in zip(axes, choice, strict=True):
            point = specs.merge(
                point,
                {"set": {axis.removeprefix("set."): value}}
                if axis.startswith("set.")
                else {axis: value},
            )
        runs += [specs.merge(fixed, point, {"seed": seed}) for seed in seeds]
    return Sweep(name, [axis for axis, _ in axes], seeds, runs)


def _value(doc: tomlfile.Document, at: tomlfile.Key, value: object) -> object:
    """A checked flag or setting; `at` ends in its name, or in "set" and its name."""
    name = str(at[-1])
    try:
        if at[-2:-1] == ("set",):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            return check(FLAGS["set"], f"{name}={text}").partition("=")[2]
        if FLAGS[name].many and isinstance(value, list):
            return [check(FLAGS[name], item) for item in value]
        return check(FLAGS[name], value)
    except UsageError as error:
        raise doc.wrong(at, f"{name}: {error}") from None


def _known(doc: tomlfile.Document, at: tomlfile.Key, table: dict[str, object]) -> None:
    if "seed" in table:
        raise doc.wrong((*at, "seed"), "seeds stand at the top of the file: seeds = 3")
    doc.only(table, at, [name for name in FLAGS if name != "seed"])


def _fixed(doc: tomlfile.Document) -> Spec:
    part = doc.table((), "run", doc.data)
    _known(doc, ("run",), part)
    result: Spec = {}
    for name, value in part.items():
        if name == "set":
            settings = doc.table(("run",), "set", part)
            result["set"] = {k: _value(doc, ("run", "set", k), v) for k, v in settings.items()}
        else:
            result[name] = _value(doc, ("run", name), value)
    if str(result.get("topology", "")).endswith(".toml"):
        result["topology"] = _topology(doc, ("run", "topology"), str(result["topology"]))
    return result


def _topology(doc: tomlfile.Document, at: tomlfile.Key, text: str) -> str:
    """A network's file is named from where the sweep's file is."""
    place = Path(text) if Path(text).is_absolute() else doc.path.parent / text
    if not place.is_file():
        raise doc.wrong(at, f"topology: there is no file {place}")
    return str(place)


def _axes(doc: tomlfile.Document, fixed: Spec) -> list[tuple[str, list[object]]]:
    grid = doc.table((), "grid", doc.data)
    _known(doc, ("grid",), grid)
    axes: list[tuple[str, list[object]]] = []
    for name, values in grid.items():
        if name == "set":
            settings = doc.table(("grid",), "set", grid)
            axes += [(f"set.{k}", _list(doc, ("grid", "set", k), v)) for k, v in settings.items()]
            continue
        if name in fixed:
            raise doc.wrong(("grid", name), f"'{name}' stands in [run] already; drop one of them")
        axes.append((name, _list(doc, ("grid", name), values)))
    return axes


def _list(doc: tomlfile.Document, at: tomlfile.Key, values: object) -> list[object]:
    name = at[-1]
    if not isinstance(values, list) or not values:
        raise doc.wrong(at, f"'{name}' has to be a list of values, like {name} = [1, 2]")
    checked = [_value(doc, at, value) for value in values]
    if name == "topology":
        checked = [_topology(doc, at, str(c)) if str(c).endswith(".toml") else c for c in checked]
    if len({str(value) for value in checked}) < len(checked):
        raise doc.wrong(at, f"'{name}' has a value twice; seeds repeat a run")
    return checked


def _seeds(doc: tomlfile.Document) -> list[int]:
    seeds = doc.data.get("seeds", 1)
    if isinstance(seeds, int) and not isinstance(seeds, bool) and 1 <= seeds <= 10_000:
        return list(range(1, seeds + 1))
    if (
        isinstance(seeds, list)
        and seeds
        and all(isinstance(s, int) and not isinstance(s, bool) and s >= 0 for s in seeds)
        and len(set(seeds)) == len(seeds)
    ):
        return seeds
    raise doc.wrong(("seeds",), "seeds is a number from 1 to 10000 or a list of different numbers")


# What a row of the summary shows: header, place in the result.
COLUMNS = (
    ("P50", ("slowdown", "p50")),
    ("P99", ("slowdown", "p99")),
    ("short P99", ("sim", "single_packet", "p99")),
    ("application", ("sim", "utilisation", "application")),
    ("total", ("sim", "utilisation", "total")),
    ("queue max KB", ("sim", "queues", "host-down", "max_bytes")),
)


def pick(result: dict, place: tuple[str, ...]) -> float | None:
    """The number at `place` in `result`, or None."""
    found: object = result
    for step in place:
        found = found.get(step) if isinstance(found, dict) else None
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def point_of(sweep: Sweep, run: Spec) -> list[str]:
    """A run's place in the grid."""
    settings = run.get("set", {})
    assert isinstance(settings, dict)
    return [
        str(settings.get(axis.removeprefix("set.")) if axis.startswith("set.") else run.get(axis))
        for axis in sweep.varied
    ]


def summary(sweep: Sweep, results: list[dict | None]) -> Table:
    """A row per point of the grid, means over its seeds."""
    grid = table(sweep.name, *(sweep.varied or ["run"]), "runs", *(c for c, _ in COLUMNS), left=1)
    points: dict[tuple[str, ...], list[dict]] = {}
    for run, result in zip(sweep.runs, results, strict=True):
        rows = points.setdefault(tuple(point_of(sweep, run)), [])
        if result:
            rows.append(result)
    for point, rows in points.items():
        cells = []
        for name, place in COLUMNS:
            values = [v for row in rows if (v := pick(row, place)) is not None]
            mean = sum(values) / len(values) if values else None
            if mean is not None and name.endswith("KB"):
                mean /= 1000
            if mean is None:
                cells.append("–")
            elif place[-2] == "utilisation":
                cells.append(f"{mean:.1%}")
            else:
                cells.append(f"{mean:,.2f}" if mean < 100 else f"{mean:,.0f}")
        grid.add_row(*(point or ("all",)), str(len(rows)), *cells)
    return grid


def write_csv(path: Path, sweep: Sweep, results: list[dict | None]) -> None:
    """A row per run."""
    try:
        with path.open("w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(
                [*sweep.varied, "seed", *(name.lower().replace(" ", "_") for name, _ in COLUMNS)]
            )
            for run, result in zip(sweep.runs, results, strict=True):
                values = [pick(result, place) if result else None for _, place in COLUMNS]
                if values[-1] is not None:
                    values[-1] /= 1000
                rows.writerow(
                    [*point_of(sweep, run), run["seed"], *("" if v is None else v for v in values)]
                )
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}; give another --out") from None
