# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Measures an experiment of `./homa lab run`, or a benchmark, and writes the files of its items.

Runs that count are kept in the folder of the results, so the same command measures only what is
missing. If one run does not count, no item is made of the others: what they say together would be
of another experiment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab import provenance
from lab.cluster import experiments
from lab.errors import LabError
from lab.reproduce import results
from lab.reproduce.items import ITEMS
from lab.reproduce.place import Place
from lab.reproduce.real.catalogue import EXPERIMENTS
from lab.reproduce.real.experiment import Bench, Experiment, Runs
from lab.sim.figures import base

RUNS = "lab-runs"  # the folder of runs in that of results


def make(name: str, where: Place) -> None:
    """All items of the experiment `name`; LabError if they cannot be made."""
    if where.only_finished:
        raise LabError("it cannot be made in part; leave --finished out")
    experiment, options = EXPERIMENTS[name], where.options
    before = provenance.here()  # the machine's load is that of others then
    if isinstance(experiment, Bench):
        rounds = experiment.seed_list(options.quick, options.seeds)
        _write(experiment, where, experiment.measure(len(rounds)), len(rounds), before)
        return
    runs = measure(experiment, where)
    doubtful = [one for one in runs.all() if one.doubts]
    if doubtful:
        raise LabError(
            f"{len(doubtful)} of {len(runs.all())} runs do not count, the first: "
            f"{words(doubtful[0])}: {'; '.join(doubtful[0].doubts)}. Those that count are kept; "
            "the same command measures the others again"
        )
    _write(experiment, where, experiment.make(runs), len(runs.seeds), before)


def _write(
    experiment: Experiment | Bench,
    where: Place,
    outputs: dict[str, base.Output],
    seeds: int,
    before: dict[str, object],
) -> None:
    """The files of all items of `experiment`."""
    so_many = replace(where.options, seeds=seeds)
    for item in (item for item in ITEMS if item.lab == experiment.name):
        figure = base.Figure(item.name, item.title, _never, experiment.rule)
        files = base.deliver(figure, outputs[item.name], so_many, where.folder)
        origin = results.origin(item, where.options, where.simulator, before)
        where.keep(item, files, origin)


def measure(experiment: Experiment, where: Place) -> Runs:
    """Its runs, as `./homa lab run` measures and shows them."""
    options, folder = where.options, where.folder / RUNS / experiment.name
    seeds = experiment.seed_list(options.quick, options.seeds)
    hosts, choose = experiments.find(experiment.run or experiment.name, options.quick)
    measured = choose(experiment.wanted(options.quick, folder))
    chosen = seeds[:1] if experiment.own_seeds else seeds
    networks = [experiment.network(hosts, seed) for seed in chosen]
    found = [measured(network, None, None) for network in networks]
    return Runs(options.quick, networks[0], seeds, found)


def words(one: Any) -> str:
    """Which run it is."""
    cell = getattr(one, "cell", None)
    return cell.words() if cell else f"{one.workload.upper()}, {one.label}"


def _never(*_: object) -> base.Output:
    raise LabError("real packets are measured by the lab")
