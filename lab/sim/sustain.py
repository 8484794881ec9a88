# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Whether a protocol sustains a load, and the search for the highest load that it does.

Sustained: the backlog that the protocol has above the oracle's, under the same arrivals, grows by
less than 1 % of what is offered. What counts is the upper end of the 95 % interval over at least
three seeds, in two windows of which the second is twice as long. (The backlog alone grows and
shrinks with the few large messages that happen to come, under every protocol and by more than
that.) Not sustained: the lower end is above 1 % in one of the windows. Else the runs cannot tell,
and the load counts as not shown to be sustained.

The oracle sends the shortest message first, which is not the order that carries most. Where it falls
behind the protocol by more than 1 % (near the limit of W1 and W2), it is no reference, and the
protocol's own backlog is judged in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lab.sim.stats import Stat, stat
from lab.sim.sweep import pick

LIMIT = 0.01
SEEDS = 3  # at least
WINDOWS = ((0.0, 1 / 3), (1 / 3, 1.0))  # shares of the measured time
_POINTS = 3  # of a straight line, at least


def slope(values: Sequence[float]) -> float | None:
    """By how much a straight line through equally spaced `values` grows from one to the next."""
    count = len(values)
    if count < _POINTS:
        return None
    middle = (count - 1) / 2
    square = sum((n - middle) ** 2 for n in range(count))
    return sum((n - middle) * value for n, value in enumerate(values)) / square


def growth(result: dict, window: tuple[float, float], own: bool = False) -> float | None:
    """Growth of a run's backlog in a window, as a share of what is offered.

    Above the oracle's, or the protocol's `own`.
    """
    backlog = result.get("sim", {}).get("backlog", {})
    ours, theirs = backlog.get("samples") or [], backlog.get("reference") or []
    interval = pick(result, ("sim", "backlog", "interval_s"))
    offered = pick(result, ("throughput", "offered_gbps"))
    if not interval or not offered or backlog.get("aborted"):
        return None
    count = min(len(ours), len(theirs))
    first, last = (round(share * count) for share in window)
    rise = slope([ours[n] - (0.0 if own else theirs[n]) for n in range(first, last)])
    return None if rise is None else rise / interval / (offered * 1e9 / 8)


@dataclass(frozen=True)
class Verdict:
    """What the seeds say about one load: the growth in each window, None where it is unknown.

    `windows`: above the oracle's. `own`: of the protocol's backlog alone.
    """

    windows: tuple[Stat | None, ...]
    own: tuple[Stat | None, ...] = ()

    @property
    def judged(self) -> tuple[Stat | None, ...]:
        """The growths that count."""
        last = self.windows[-1]
        behind = last is not None and _enough(last) and last.high < -LIMIT
        return self.own if behind and self.own else self.windows

    @property
    def sustained(self) -> bool | None:
        """True or False if the intervals say so, else None."""
        if any(w is not None and _enough(w) and w.low > LIMIT for w in self.judged):
            return False
        if all(w is not None and _enough(w) and w.high < LIMIT for w in self.judged):
            return True
        return None

    def words(self) -> str:
        """For tables."""
        return {True: "sustained", False: "not sustained", None: "undecided"}[self.sustained]


def _enough(window: Stat) -> bool:
    return window.count >= SEEDS and window.half is not None


def judge(results: Iterable[dict]) -> Verdict:
    """The verdict on a load from its runs, one per seed."""
    runs = list(results)
    above, own = (
        tuple(stat(growth(run, window, alone) for run in runs) for window in WINDOWS)
        for alone in (False, True)
    )
    return Verdict(above, own)


@dataclass
class Knee:
    """A search by halving: loads that have been tried and whether they were sustained."""

    tried: dict[float, Verdict]
    step: float

    @property
    def highest(self) -> float | None:
        """The highest load that is sustained, below the lowest that is not.

        A load about which the runs could not tell counts for nothing if a higher one is sustained.
        """
        over = min((x for x, v in self.tried.items() if v.sustained is False), default=math.inf)
        good = (x for x, v in self.tried.items() if v.sustained is True and x < over)
        return max(good, default=None)

    @property
    def known(self) -> bool:
        """Whether there is a highest load, or every load is known not to be sustained."""
        return self.highest is not None or all(v.sustained is False for v in self.tried.values())

    def next(self) -> float | None:
        """The load to try next; None when the knee is known to a step, or nothing is sustained."""
        floor = self.highest
        if floor is None:
            return None
        ceiling = min((load for load in self.tried if load > floor), default=None)
        if ceiling is None or ceiling - floor <= self.step * 1.001:
            return None
        middle = round((ceiling + floor) / 2 / self.step) * self.step
        return middle if floor < middle < ceiling else None


def search(
    cases: Iterable[object],
    loads: Sequence[float],
    step: float,
    run: Callable[[list[tuple[object, float]]], dict[tuple[object, float], list[dict]]],
) -> tuple[dict[object, Knee], dict[tuple[object, float], list[dict]]]:
    """The knee of each case and all results. `run` gives the results of (case, load) pairs.

    All cases advance together so that all cores have work.
    """
    knees = {case: Knee({}, step) for case in cases}
    results: dict[tuple[object, float], list[dict]] = {}
    wanted = [(case, load) for case in knees for load in loads]
    while wanted:
        found = run(wanted)
        results.update(found)
        for case, load in wanted:
            knees[case].tried[load] = judge(found[case, load])
        more = ((case, knee.next()) for case, knee in knees.items())
        wanted = [
            (case, round(load, 4))
            for case, load in more
            if load is not None and round(load, 4) not in knees[case].tried
        ]
    return knees, results
