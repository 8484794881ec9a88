# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a command line of `./homa lab run sustained` means; its network is lab/cluster/setup.py's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lab.cluster import points, stored_runs
from lab.cluster.setup import Setup
from lab.cluster.arguments import Wanted
from lab.errors import UsageError
from lab.sustained import loads, run, show
from lab.sustained.loads import NAME, Measured


def hosts(quick: bool) -> int:
    """How many there are unless the command line says it."""
    return loads.QUICK_HOSTS if quick else loads.HOSTS


def parse_loads(text: str) -> tuple[int, ...]:
    """Percents in `text`, as in "80,88", in increasing order; or a UsageError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 1 <= int(part) <= 99 for part in parts):
        raise UsageError(f"--rpc {text}: write percents of the link from 1 to 99, like 80,88")
    return tuple(sorted({int(part) for part in parts}))


def choose(wanted: Wanted) -> Callable[[Setup, Path | None, Path | None], list[Measured]]:
    """What measures and shows these loads; a UsageError for a wrong choice."""
    usual = loads.QUICK_LOADS if wanted.quick else loads.LOADS
    chosen = parse_loads(wanted.rpc) if wanted.rpc else usual
    text = wanted.workloads or loads.WORKLOAD
    workloads = points.choose(NAME, text, loads.WORKLOADS, "--workloads")
    if len(workloads) != 1:
        raise UsageError(f"--workloads {text}: sustained has one workload, like w4")
    kinds = points.choose(NAME, wanted.transports or "homa", loads.TRANSPORTS, "--transports")

    def measure(setup: Setup, json_file: Path | None, plot: Path | None) -> list[Measured]:
        if plot:
            raise UsageError("sustained has tables and no figure: leave --plot out")
        if wanted.quick:
            setup = replace(setup, longest_s=min(setup.longest_s, loads.QUICK_S))
        cells = loads.cells(workloads[0], chosen, kinds, setup.seed)
        folder = stored_runs.open_folder(
            wanted.keep or stored_runs.usual(NAME, wanted.quick), setup
        )
        show.begin(setup, cells, folder.words())
        found = run.measure(setup, cells, folder, show.one)
        show.end(setup, found, json_file)
        return found

    return measure
