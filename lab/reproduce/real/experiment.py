# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""An experiment as items see it: its runs by seed, and numbers over seeds with what stands behind them.

A percentile of real packets is that of one seed's messages, of a thousand or more; over several seeds
the number is the mean of theirs, and n all their messages together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.cluster.arguments import BUFFER, LINK, LONGEST_S, MESSAGES, MTU, VIA, Wanted
from lab.cluster.common_text import Doubtful
from lab.cluster.real_and_simulated import BUSY
from lab.cluster.setup import Setup, check
from lab.sim.compare import Row, at_most, info, within
from lab.sim.figures.base import Output
from lab.sim.published import published
from lab.sim.stats import Stat, stat
from lab.sim.tails import LEAST, Few
from lab.units import format_rate

Value = Stat | Few | None
One = tuple[float | None, int]  # a number (None: of too few messages) and how many stand behind it


@dataclass(frozen=True)
class Runs:
    """All runs of an experiment: `setup` with the first of `seeds`, and what each seed gave."""

    quick: bool
    setup: Setup
    seeds: Sequence[int]
    by_seed: Sequence[Sequence[Any]]

    def all(self) -> list[Doubtful]:
        """The runs of all seeds."""
        return [one for some in self.by_seed for one in some]

    def by_cell(self) -> list[dict[Any, Any]]:
        """Of each seed its runs by their cell of the experiment."""
        return [{one.cell: one for one in some} for some in self.by_seed]

    def facts(self) -> list[dict[str, float]]:
        """What is known of each run beside its numbers."""
        return [one.facts for some in self.by_seed for one in some]

    def records(self, row: Callable[[int, Any], list[object]]) -> list[list[object]]:
        """A row of the CSV for each seed and run."""
        pairs = zip(self.seeds, self.by_seed, strict=True)
        return [row(seed, one) for seed, some in pairs for one in some]

    def as_json(self) -> list[list[object]]:
        """All numbers, seed by seed."""
        return [[one.as_json() for one in some] for some in self.by_seed]


@dataclass(frozen=True)
class Experiment:
    """One of `./homa lab run`; `name` is its name as of what items are made.

    `make` gives the outputs of its items, by their names. `seeds`: how many, quick and full.
    `own_seeds`: it runs so many seeds by itself. `short` and `full`: what of it is measured. `run`:
    its name for `./homa lab run`, if that is another. `buffer` and `longest`: of a port, and seconds
    that a run measures at most, as on its command line.
    `rule` names the definition of its numbers; results of another do not stand beside them.
    """

    name: str
    make: Callable[[Runs], dict[str, Output]]
    seeds: tuple[int, int] = (1, 3)
    own_seeds: int = 0
    short: Wanted = field(default_factory=lambda: Wanted(True))
    full: Wanted = field(default_factory=lambda: Wanted(False))
    run: str = ""
    buffer: str = BUFFER
    longest: float = LONGEST_S
    rule: str = "1"

    def seed_list(self, quick: bool, wanted: int) -> list[int]:
        """The seeds that are measured; `wanted`: so many of them (0: as many as usual)."""
        usual = self.own_seeds or self.seeds[0 if quick else 1]
        return list(range(1, (usual if self.own_seeds else wanted or usual) + 1))

    def network(self, hosts: int, seed: int) -> Setup:
        """Its network of so many hosts, which is that of `./homa lab run` but for buffer and longest."""
        return check(hosts, LINK, 0.0, MTU, self.buffer, seed, MESSAGES, self.longest, VIA)

    def wanted(self, quick: bool, folder: Path) -> Wanted:
        """Which of it is measured; runs that count are kept in `folder`."""
        return replace(self.short if quick else self.full, keep=folder)


@dataclass(frozen=True)
class Bench:
    """A benchmark with rounds instead of seeds: `measure` gives its items' outputs, by their names, of
    so many of them; `rounds`: how many, quick and full. `rule` as of an experiment."""

    name: str
    measure: Callable[[int], dict[str, Output]]
    rounds: tuple[int, int]
    rule: str = "1"

    def seed_list(self, quick: bool, wanted: int) -> list[int]:
        """The rounds; `wanted`: so many of them (0: as many as usual)."""
        return list(range(1, (wanted or self.rounds[0 if quick else 1]) + 1))


def over_seeds(values: Iterable[One]) -> Value:
    """The mean of what seeds gave, one number each; Few if one of them has too few messages."""
    known = list(values)
    if not known:
        return None
    if any(value is None for value, _ in known):
        return Few(min(n for value, n in known if value is None))
    mean = stat(value for value, _ in known)
    return mean and replace(mean, samples=sum(n for _, n in known))


def worst(values: Sequence[Value], how: Callable[[float], float] = float) -> Value:
    """The one whose mean is greatest by `how`; Few if one has too few messages, None of nothing."""
    few = [value for value in values if isinstance(value, Few)]
    if few:
        return min(few, key=lambda value: value.samples)
    known = [value for value in values if isinstance(value, Stat)]
    return max(known, key=lambda value: how(value.mean)) if len(known) == len(values) else None


def off(sim: float | None, lab: float | None) -> float | None:
    """By how many percent the simulator's number is above the lab's."""
    return None if sim is None or not lab else 100 * (sim / lab - 1)


def compared_with_simulated(what: str, percentile: str, ours: Value, judged: bool) -> Row:
    """By how much the simulator is off."""
    text = f"{what}: simulated {percentile.upper()} off the real one by"
    points = published()["goals"]["simulated_points"][percentile]
    return within(text, ours, points) if judged else info(text, None, ours, "%", 1)


def goal(what: str, ours: Value, most: float, unit: str = "") -> Row:
    """A goal of this project, which no paper prints."""
    return at_most(what, None, ours, unit, goal=most)


def painted(draw: Callable[[Path], None]) -> Callable[[Path], list[Path]]:
    """What writes a picture in both formats, by what draws it into a file."""

    def both(stem: Path) -> list[Path]:
        paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
        for path in paths:
            draw(path)
        return paths

    return both


def notes(runs: Runs, hosts: str, facts: Sequence[dict[str, float]]) -> list[str]:
    """What all experiments say of their network and of the machine's part."""
    setup = runs.setup
    rates = sorted({(fact["link_bps"], fact["dilation"]) for fact in facts})
    slower = ", ".join(f"{format_rate(rate)} ({times:g} times slower)" for rate, times in rates)
    busiest = max(fact["busy"] for fact in facts)
    latest = max(fact.get("late_p99_ns", 0.0) for fact in facts) / 1e3
    return [
        f"Real packets between namespaces of one machine: {hosts}, links that stand for "
        f"{format_rate(setup.link_bps)} and have {slower}, MTU {setup.mtu}, {setup.buffer:,} bytes of "
        "buffer per port. All times are as many times longer.",
        f"All {len(runs.all())} runs count: at most {busiest:.0%} of the processors were busy "
        f"({BUSY:.0%} may be), requests left at most {latest:,.0f} µs late (P99).",
        f"A percentile over several seeds is the mean of theirs, each of {LEAST:,} messages or more.",
    ]
