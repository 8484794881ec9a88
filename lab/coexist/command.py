# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a command line of `./homa lab run coexist` means; its network is lab/cluster/setup.py's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lab.cluster import points, stored_runs
from lab.cluster.setup import Setup
from lab.cluster.arguments import Wanted
from lab.coexist import grid, run, show
from lab.coexist.measured import Measured
from lab.errors import UsageError
from lab.sim.published import published

NAME = "coexist"
QUICK_HOSTS = 4


def hosts(quick: bool) -> int:
    """How many there are unless the command line says it; the talk had 4 or 12."""
    return QUICK_HOSTS if quick else published()["snia"]["hosts"]


def choose(wanted: Wanted) -> Callable[[Setup, Path | None, Path | None], list[Measured]]:
    """What measures and shows that part of the grid; a UsageError for a wrong choice."""
    quick, workloads, rpc, streams = wanted.quick, wanted.workloads, wanted.rpc, wanted.streams
    of_all = grid.QUICK_WORKLOADS if quick else grid.WORKLOADS
    chosen = points.choose(NAME, workloads, grid.WORKLOADS, "--workloads") if workloads else of_all
    kinds = points.choose(NAME, wanted.transports, tuple(grid.KINDS), "--transports")
    rpcs = grid.parse_loads(rpc, "--rpc") if rpc else grid.QUICK_RPCS if quick else grid.LOADS
    usual = grid.QUICK_STREAMS if quick else grid.LOADS
    beside = grid.parse_loads(streams, "--streams") if streams else usual
    # Who names loads or workloads wants these, also where the talk has none.
    cells = grid.plan(chosen, rpcs, beside, kinds, bool(workloads or rpc or streams))
    if not cells:
        raise UsageError("no cell is left: RPCs and streams ask for more than 100 % everywhere")

    def measure(setup: Setup, json_file: Path | None, plot: Path | None) -> list[Measured]:
        fitting, full = grid.that_fit(cells, setup.mtu)
        if not any(cell.rpc for cell in fitting):
            raise UsageError("no cell is left: the RPCs alone fill the links; give a lower --rpc")
        folder = stored_runs.open_folder(wanted.keep or stored_runs.usual(NAME, quick), setup)
        show.begin(setup, fitting, full, folder.words())
        found = run.measure(setup, fitting, folder, show.one)
        show.end(setup, found, json_file, plot)
        return found

    return measure
