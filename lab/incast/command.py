# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a command line of `./homa lab run incast` means; its network is lab/cluster/setup.py's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lab.cluster import points, stored_runs
from lab.cluster.setup import Setup
from lab.cluster.arguments import Wanted
from lab.incast import bursts, run, show
from lab.incast.bursts import NAME, Cell
from lab.incast.measured import Measured


def choose(wanted: Wanted) -> Callable[[Setup, Path | None, Path | None], list[Measured]]:
    """What measures and shows these bursts; a UsageError for a wrong choice."""
    kinds = points.choose(NAME, wanted.transports, tuple(bursts.KINDS), "--transports")
    usual = bursts.QUICK_SENDERS if wanted.quick else bursts.SENDERS
    senders = bursts.parse_senders(wanted.senders) if wanted.senders else usual
    cells = [Cell(kind, n) for kind in kinds for n in senders]

    def measure(setup: Setup, json_file: Path | None, plot: Path | None) -> list[Measured]:
        folder = stored_runs.open_folder(
            wanted.keep or stored_runs.usual(NAME, wanted.quick), setup
        )
        show.begin(setup, cells, folder.words())
        found = run.measure(setup, cells, folder, show.one)
        show.end(setup, found, json_file, plot)
        return found

    return measure
