# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa reproduce` behind its command line: which page, which items, what is kept of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.console import console
from lab.errors import LabError, UsageError
from lab.reproduce import chosen, place, run, saving, simulator
from lab.sim import profiled
from lab.sim.figures.base import Options


@dataclass(frozen=True)
class Wanted:
    """The command line; names and meaning are those of its options."""

    names: tuple[str, ...] = ()
    quick: bool = False
    night: bool = False
    page: bool = False
    list_only: bool = False
    seeds: int = 0
    jobs: int = 0
    out: Path | None = None
    lab: bool = False
    keep: bool = False
    finished: bool = False
    save: bool = False


def main(wanted: Wanted, say: Callable[[str], None]) -> None:
    """Do it; LabError names what could not be made."""
    if wanted.quick and wanted.night:
        raise UsageError("give --quick or --night, not both")
    if wanted.page:
        _page(wanted)
        return
    options = Options(not wanted.night, wanted.seeds, guesses=saving.limits())
    if wanted.list_only:
        run.show_list(place.place(options, wanted.out))
        return
    _make(wanted, options, say)


def _page(wanted: Wanted) -> None:
    """Pages of what the repository keeps: nothing is made, and nothing needs to be built."""
    alone = Wanted(quick=wanted.quick, night=wanted.night, page=True, out=wanted.out)
    if wanted != alone:
        raise UsageError("--page makes nothing: give it alone, or with --quick, --night and --out")
    lengths = [quick for quick in (True, False) if not (wanted.night if quick else wanted.quick)]
    for quick in lengths:
        path = saving.browse(Options(quick), wanted.out)
        console().print(f"wrote {path}", markup=False, soft_wrap=True)


def _make(wanted: Wanted, options: Options, say: Callable[[str], None]) -> None:
    names = list(wanted.names)
    real = wanted.night and not wanted.finished
    items, left_out = chosen.choose(names, wanted.lab, real, os.geteuid() == 0)
    if wanted.keep:
        folder = place.folder_of(options, wanted.out)
        about = simulator.use(folder, lambda: profiled.ensure(say))
    else:
        about = None
        os.environ["HOMA_SIM"] = str(profiled.ensure(say))
    where = place.place(options, wanted.out, about, wanted.finished)
    failed = run.main(items, where, wanted.jobs, left_out)
    if wanted.save and (not failed or len(failed) < len(items)):
        done = [name for name in names if name not in failed]
        folder, kept = saving.keep(where.folder, where.options, done)
        console().print(f"kept {', '.join(kept)} in {folder}", markup=False)
    if failed:
        raise LabError(f"could not be made: {', '.join(failed)}; the same command tries them again")
