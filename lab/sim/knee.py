# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The search for the highest load that is sustained, with as few runs as can tell.

It begins on both sides of a guess, goes on outwards, each time twice as far, until it has a load
that is sustained and a higher one that is not, and halves what is between them down to a step. The
guess decides where the search begins and nothing else: each load is judged by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lab.sim.sustain import Verdict

Pair = tuple[object, float]


@dataclass(frozen=True)
class Plan:
    """Which loads a search may try, `least` to `most`, how closely, and how far from its guess it
    begins."""

    least: float = 0.4
    most: float = 1.0
    step: float = 0.01
    reach: float = 0.04

    def grid(self, load: float) -> float:
        """The nearest load that may be tried."""
        return round(min(self.most, max(self.least, round(load / self.step) * self.step)), 4)


@dataclass
class Knee:
    """Loads that have been tried and whether they were sustained. `complete`: the search is over."""

    tried: dict[float, Verdict] = field(default_factory=dict)
    plan: Plan = field(default_factory=Plan)
    complete: bool = True

    @property
    def highest(self) -> float | None:
        """The highest load that is sustained, below the lowest that is not.

        A load about which the runs could not tell counts for nothing if a higher one is sustained.
        """
        over = min((x for x, v in self.tried.items() if v.sustained is False), default=math.inf)
        good = (x for x, v in self.tried.items() if v.sustained is True and x < over)
        return max(good, default=None)

    @property
    def above(self) -> float | None:
        """The lowest load that was tried above the highest that is sustained."""
        floor = self.highest
        return min((x for x in self.tried if floor is None or x > floor), default=None)

    @property
    def over(self) -> float | None:
        """The lowest load that is known not to be sustained."""
        return min((x for x, v in self.tried.items() if v.sustained is False), default=None)

    @property
    def decided(self) -> bool:
        """Whether the lowest load above the highest is known not to be sustained. If not, the runs
        could not tell, and the limit may be anywhere up to `over`."""
        return self.known and (self.above is None or self.above == self.over)

    @property
    def known(self) -> bool:
        """Whether there is a highest load, or every load is known not to be sustained."""
        if not self.complete:
            return False
        return self.highest is not None or all(v.sustained is False for v in self.tried.values())

    def next(self, guess: float) -> list[float]:
        """The loads to try next; none when the knee is known to a step, or nothing is sustained."""
        plan = self.plan
        if not self.tried:
            return sorted({plan.grid(guess - plan.reach), plan.grid(guess + plan.reach)})
        floor = self.highest
        if floor is None:
            low = min(self.tried)
            return [plan.grid(low - _further(guess - low, plan))] if low > plan.least else []
        ceiling = self.above
        if ceiling is None:
            return [plan.grid(floor + _further(floor - guess, plan))] if floor < plan.most else []
        if ceiling - floor <= plan.step * 1.001:
            return []
        middle = plan.grid((ceiling + floor) / 2)
        return [middle] if floor < middle < ceiling else []

    def edge(self) -> list[float]:
        """The loads on both sides of the knee that not all seeds have judged."""
        sides = (self.highest, self.above)
        return [x for x in sides if x is not None and not self.tried[x].whole]


def _further(gone: float, plan: Plan) -> float:
    return max(2 * gone, plan.step)


Judge = Callable[[Sequence[Pair], bool], dict[Pair, "Verdict | None"]]


def search(
    guesses: dict[object, float],
    plan: Plan,
    judge: Judge,
    known: dict[object, dict[float, Verdict]] | None = None,
    groups: Iterable[Iterable[object]] = (),
) -> dict[object, Knee]:
    """The knee of each case that `guesses` has.

    `judge(pairs, whole)` gives the verdict of each (case, load), with all seeds if `whole`; None
    where runs are missing, which ends the search of that case. `known`: verdicts that are there
    already. All cases of a group advance together, so that all cores have work; the groups come one
    after the other, so that what is wanted most is there first. Without groups there is one.
    """
    knees = {case: Knee(dict((known or {}).get(case, {})), plan) for case in guesses}
    for group in groups or [list(guesses)]:
        _group([case for case in group if case in knees], knees, guesses, judge)
    return knees


def _group(
    cases: list[object], knees: dict[object, Knee], guesses: dict[object, float], judge: Judge
) -> None:
    while True:
        loads = [(c, x) for c in cases for x in knees[c].next(guesses[c])]
        loads = [(c, x) for c, x in loads if x not in knees[c].tried]
        searching = {c for c, _ in loads}
        edges = [(c, x) for c in cases if c not in searching for x in knees[c].edge()]
        if not loads and not edges:
            return
        for wanted, whole in ((loads, False), (edges, True)):
            for (case, load), verdict in (judge(wanted, whole) if wanted else {}).items():
                if verdict is None:
                    knees[case].complete = False
                else:
                    knees[case].tried[load] = verdict
        cases = [case for case in cases if knees[case].complete]
