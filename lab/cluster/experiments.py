# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The experiments of `./homa lab run` by name: how many hosts one usually has, and what measures it.

Who measures one gets the runs themselves, with the reasons why one does not count; `./homa lab run`
shows them, and `./homa reproduce` makes items of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.cluster.arguments import Wanted
from lab.errors import UsageError

if TYPE_CHECKING:
    from lab.cluster.common_text import Doubtful
    from lab.cluster.setup import Setup

    # A network, the file and the picture that are wanted; all runs.
    Measure = Callable[[Setup, Path | None, Path | None], Sequence[Doubtful]]

FIGURES = ("fig3", "fig5", "fig6")
NAMES = (*FIGURES, "coexist", "incast", "failures", "sustained")
_HOSTS, _QUICK_HOSTS = 40, 8  # of a figure


def find(name: str, quick: bool) -> tuple[int, Callable[[Wanted], Measure]]:
    """How many hosts `name` usually has, and what makes it of options."""
    if name == "coexist":
        from lab.coexist import command as coexist

        return coexist.hosts(quick), coexist.choose
    if name == "incast":
        from lab.incast import command as incast

        return 2, incast.choose  # how many there are follows from --senders
    if name == "failures":
        from lab.failures import command as failures

        return failures.hosts(quick), failures.choose
    if name == "sustained":
        from lab.sustained import command as sustained

        return sustained.hosts(quick), sustained.choose
    if name in FIGURES:
        return _QUICK_HOSTS if quick else _HOSTS, lambda wanted: _figure(name, wanted)
    raise UsageError(f"there is no {name}; choose from {', '.join(NAMES)}")


def _figure(name: str, wanted: Wanted) -> Measure:
    """What measures and shows a figure of the ATC'21 paper; a UsageError for a wrong choice."""
    from lab.cluster import run as runs
    from lab.cluster import show, stored_runs
    from lab.cluster.points import FIGURES as known
    from lab.cluster.points import TITLES, choose, points_of

    figure = known[name]
    chosen = figure.quick if wanted.quick else figure.workloads
    if wanted.workloads:
        chosen = choose(name, wanted.workloads, figure.workloads, "--workloads")
    kinds = choose(name, wanted.transports or "homa,tcp", tuple(TITLES), "--transports")

    def measure(setup: Setup, json_file: Path | None, plot: Path | None) -> Sequence[Doubtful]:
        folder = stored_runs.open_folder(
            wanted.keep or stored_runs.usual(name, wanted.quick), setup
        )
        points = points_of(name, chosen, kinds)
        show.begin(name, setup, folder.words())
        if wanted.inventory:
            from lab.cluster import real_hosts
            from lab.inventory import hosts

            known = hosts.load(wanted.inventory)
            points = real_hosts.fitting(known, points)
            found = real_hosts.measure(setup, known, points, folder, show.point)
        else:
            found = runs.measure(setup, points, folder, show.point)
        show.end(name, setup, found, json_file, plot)
        return found

    return measure
