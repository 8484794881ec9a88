# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Whether a protocol sustains a load.

Sustained: the backlog that the protocol has above the oracle's, under the same arrivals, grows by
less than 1 % of what is offered. What counts is the upper end of the 95 % interval over at least
three seeds, in two windows of which the second is twice as long. (The backlog alone grows and
shrinks with the few large messages that happen to come, under every protocol and by more than
that.) Not sustained: the lower end is above 1 % in one of the windows. Else the runs cannot tell,
and the load counts as not shown to be sustained.

The oracle sends the shortest message first, which is not the order that carries most. Where it falls
behind the protocol by more than 1 % (near the limit of W1 and W2), it is no reference, and the
protocol's own backlog is judged in the same way.

Two things spare runs. Both were fixed before a result was seen by them:

* A run ends after its first window if the backlog grew by more than STOP_GROWTH there, its own and
  above the oracle's (homa-sim --stop-growth). If the first windows of all seeds prove that the load
  is not sustained, by the rule above and whichever of the two is judged, the second can change
  nothing: one window is enough for that. If they do not, these seeds run again, to their end.
* The first FIRST_SEEDS seeds decide alone if they do so by intervals of 99 %. The highest load that
  is sustained and the one above it are judged by all seeds and 95 % always (lab.sim.knee).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.sim.stats import Stat, stat, t95
from lab.sim.sweep import pick

LIMIT = 0.01
SEEDS = 3  # at least
WINDOWS = ((0.0, 1 / 3), (1 / 3, 1.0))  # shares of the measured time
STOP_GROWTH = 0.04
FIRST_SEEDS = SEEDS
_T99 = 9.925  # Student's t, two-sided 99 %, of three seeds
EARLY = _T99 / t95(FIRST_SEEDS - 1)
# What results say of the definition by which they were judged.
RULE = (
    f"sustained: growth above the oracle's under {LIMIT:g} of what is offered, upper 95 % bound over "
    f"{SEEDS} seeds or more, windows {', '.join(f'{a:.3g} to {b:.3g}' for a, b in WINDOWS)}"
)
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

    Above the oracle's, or the protocol's `own`. None of a window that the run did not come to.
    """
    backlog = result.get("sim", {}).get("backlog", {})
    ours, theirs = backlog.get("samples") or [], backlog.get("reference") or []
    interval = pick(result, ("sim", "backlog", "interval_s"))
    offered = pick(result, ("throughput", "offered_gbps"))
    count = min(len(ours), len(theirs))
    if stopped(result):
        # What the whole window would have had; the oracle was there to its end.
        offered = pick(result, ("sim", "backlog", "offered_gbps"))
        count = len(theirs)
    if not interval or not offered:
        return None
    first, last = (round(share * count) for share in window)
    if last > len(ours):
        return None
    rise = slope([ours[n] - (0.0 if own else theirs[n]) for n in range(first, last)])
    return None if rise is None else rise / interval / (offered * 1e9 / 8)


def stopped(result: dict) -> bool:
    """Whether a run ended before its second window."""
    return bool(result.get("sim", {}).get("backlog", {}).get("aborted"))


@dataclass(frozen=True)
class Verdict:
    """What the seeds say about one load: the growth in each window, None where it is unknown.

    `windows`: above the oracle's. `own`: of the protocol's backlog alone. `stretch`: the intervals
    that count are so many times those of 95 %. `short`: some runs ended after the first window.
    `whole`: all seeds are in it.
    """

    windows: tuple[Stat | None, ...]
    own: tuple[Stat | None, ...] = ()
    stretch: float = 1.0
    short: bool = False
    whole: bool = True

    @property
    def judged(self) -> tuple[Stat | None, ...]:
        """The growths that count."""
        last = self.windows[-1]
        behind = last is not None and _enough(last) and self._high(last) < -LIMIT
        return self.own if behind and self.own else self.windows

    @property
    def shown(self) -> Stat | None:
        """The growth that stands for all in figures: the one that says most against the load."""
        known = [w for w in (self.windows[:1] if self.short else self.judged) if w is not None]
        return max(known, key=self._high, default=None)

    @property
    def sustained(self) -> bool | None:
        """True or False if the intervals say so, else None."""
        if self.short:
            return (
                False if all(self._too_much(w) for w in (self.windows[0], *self.own[:1])) else None
            )
        if any(self._too_much(w) for w in self.judged):
            return False
        if all(w is not None and _enough(w) and self._high(w) < LIMIT for w in self.judged):
            return True
        return None

    def _too_much(self, window: Stat | None) -> bool:
        if window is None or not _enough(window):
            return False
        return window.mean - self.stretch * (window.half or 0.0) > LIMIT

    def _high(self, window: Stat) -> float:
        return window.mean + self.stretch * (window.half or 0.0)

    def words(self) -> str:
        """For tables."""
        return {True: "sustained", False: "not sustained", None: "undecided"}[self.sustained]

    def how(self) -> str:
        """By which runs and which intervals."""
        first = self.windows[0]
        seeds = f"{first.count if first else 0} seeds"
        level = "95 %" if self.stretch == 1 else "99 %"
        return f"{seeds}, {level}{', first window' if self.short else ''}"


def _enough(window: Stat) -> bool:
    return window.count >= SEEDS and window.half is not None


def judge(results: Iterable[dict], stretch: float = 1.0, whole: bool = True) -> Verdict:
    """The verdict on a load from its runs, one per seed."""
    runs = list(results)
    above, own = (
        tuple(stat(growth(run, window, alone) for run in runs) for window in WINDOWS)
        for alone in (False, True)
    )
    return Verdict(above, own, stretch, any(map(stopped, runs)), whole)
