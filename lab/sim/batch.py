# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa sim figure`, `sweep` and `check` do once their arguments are understood."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from lab.console import console, table
from lab.errors import LabError, UsageError
from lab.sim import check as checks
from lab.sim import compare, draw, program
from lab.sim import figures as registry
from lab.sim import sweep as sweeps
from lab.sim.figures import base
from lab.sim.figures.base import Figure, Options
from lab.sim.pool import Executor, Lab, Local
from lab.sim.store import Store, write

_SHOWN_PROBLEMS = 5


def options(quick: bool, seeds: int, headers: str, scale: float, protocols: str) -> Options:
    """The command line's wishes, checked."""
    chosen = tuple(draw.TITLES) if protocols == "all" else tuple(filter(None, protocols.split(",")))
    for name in chosen:
        if name not in draw.TITLES:
            raise UsageError(
                f"there is no protocol '{name}'; choose from {', '.join(draw.TITLES)}, or all"
            )
    return Options(quick, seeds, headers, scale, chosen)


@contextlib.contextmanager
def _executor(jobs: int, scheduler: str | None, store: Store) -> Iterator[Executor]:
    if not scheduler:
        yield Local(jobs)
        return
    if jobs:
        raise UsageError(
            "--jobs is for this machine; how many run at once on others is up to their workers"
        )
    from lab.sim.dask import Dask

    remote = Dask(scheduler, store)
    try:
        yield remote
    finally:
        remote.close()


def list_table() -> Table:
    """Which figures there are."""
    result = table("figures", "name", "what", left=2)
    for figure in registry.FIGURES.values():
        result.add_row(figure.name, figure.title)
    return result


def figures(name: str, wanted: Options, folder: Path, jobs: int, scheduler: str | None) -> None:
    """Draw the figure `name`, or all."""
    chosen = registry.choose(name)
    store = Store(folder / "runs", program.build())
    missing = []
    with _executor(jobs, scheduler, store) as executor:
        for figure in chosen:
            lab = Lab(store, executor, figure.name)
            try:
                _one(figure, lab, wanted, folder)
            except UsageError:
                raise
            except LabError as error:
                if len(chosen) == 1:
                    raise
                missing.append(f"{figure.name}: {error}")
    for line in missing:
        console().print(line, markup=False)
    if missing:
        raise LabError("some figures could not be made; the reasons are above")


def _one(figure: Figure, lab: Lab, wanted: Options, folder: Path) -> None:
    output = figure.compute(lab, wanted)
    if not lab.fresh and not lab.found:
        raise LabError(f"none of its runs succeeded; the first said: {lab.problems[0]}")
    files = base.deliver(figure, output, wanted, folder)
    out = console()
    if output.rows:
        out.print(compare.as_table(output.title, output.rows))
    else:
        out.print(output.title, markup=False)
    for note in output.notes:
        out.print(f"• {note}", markup=False)
    out.print(
        f"{_runs(lab.fresh)} made, {lab.found} found; {wanted.words()}; ± is a 95 % interval",
        markup=False,
    )
    out.print(
        f"wrote {folder / figure.name}.{{{','.join(f.suffix[1:] for f in files)}}}\n", markup=False
    )
    _tell(lab)


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"


def _tell(lab: Lab) -> None:
    """Failed runs are said and make the status 1."""
    if not lab.problems:
        return
    out = console()
    for line in lab.problems[:_SHOWN_PROBLEMS]:
        out.print(f"failed: {line}", markup=False)
    more = len(lab.problems) - _SHOWN_PROBLEMS
    if more > 0:
        out.print(f"… and {more} more", markup=False)
    raise LabError(f"{_runs(len(lab.problems))} failed; give the same command again to repeat them")


def sweep(path: Path, folder: Path | None, jobs: int, scheduler: str | None) -> None:
    """Make what is missing of a sweep and show a summary of it."""
    grid = sweeps.load(path)
    for spec in grid.runs:
        program.check(spec)
    place = folder or path.with_name(f"{grid.name}.sweep")
    store = Store(place / "runs", program.build())
    with _executor(jobs, scheduler, store) as executor:
        lab = Lab(store, executor, grid.name)
        results = lab.results(grid.runs)
    sweeps.write_csv(place / "results.csv", grid, results)
    out = console()
    out.print(sweeps.summary(grid, results))
    out.print(
        f"{_runs(lab.fresh)} made, {lab.found} found finished; results in {place}", markup=False
    )
    _tell(lab)


def check(name: str, wanted: Options, folder: Path, json_file: Path | None) -> None:
    """Write the document of a check, or print it."""
    store = Store(folder / "runs", program.build())
    lab = Lab(store, Local(), name)
    document = checks.run(name, lab, wanted)
    if json_file:
        write(json_file, document)
    else:
        print(json.dumps(document, indent=2))
