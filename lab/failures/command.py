# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a command line of `./homa lab run failures` means; its network is lab/cluster/setup.py's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lab.cluster import points, stored_runs
from lab.cluster.setup import Setup
from lab.cluster.arguments import Wanted
from lab.errors import UsageError
from lab.failures import faults, run, show
from lab.failures.faults import NAME, Cell
from lab.failures.measured import Measured


def hosts(quick: bool) -> int:
    """How many there are unless the command line says it."""
    return faults.QUICK_HOSTS if quick else faults.HOSTS


def choose(wanted: Wanted) -> Callable[[Setup, Path | None, Path | None], list[Measured]]:
    """What measures and shows these faults; a UsageError for a wrong choice."""
    load = faults.parse_load(wanted.rpc) if wanted.rpc else faults.RPC
    text = wanted.workloads or faults.WORKLOAD
    workloads = points.choose(NAME, text, faults.WORKLOADS, "--workloads")
    if len(workloads) != 1:
        raise UsageError(f"--workloads {text}: failures has one workload, like w4")
    kinds = points.choose(NAME, wanted.transports, faults.TRANSPORTS, "--transports")
    which = points.choose(NAME, wanted.faults, tuple(faults.FAULTS), "--faults")
    cells = [Cell(kind, workloads[0], load, fault) for kind in kinds for fault in which]

    def measure(setup: Setup, json_file: Path | None, plot: Path | None) -> list[Measured]:
        if setup.hosts < faults.LEAST_HOSTS:
            raise UsageError(f"--hosts {setup.hosts}: failures needs {faults.LEAST_HOSTS} or more")
        if plot:
            raise UsageError("failures has tables and no figure: leave --plot out")
        folder = stored_runs.open_folder(
            wanted.keep or stored_runs.usual(NAME, wanted.quick), setup
        )
        show.begin(setup, cells, folder.words())
        found = run.measure(setup, cells, folder, show.one)
        show.end(setup, found, json_file)
        return found

    return measure
