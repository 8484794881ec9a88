# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What is asked of the ATC'21 figures on real packets, as numbers for the scoreboard.

The goals themselves stand in bench/targets.toml. A number is None if a point that it needs is missing
or does not count, or has too few messages for a percentile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from lab.cluster.points import FIGURES, SHARES
from lab.cluster.real_and_simulated import Compared, divided
from lab.sim.published import published

BOTH = ("p50", "p99")


def numbers(name: str, points: Sequence[Compared]) -> dict[str, float | None]:
    """Of the figure `name`, each by its name; of the tenths of the messages the worst."""
    homa = [one for one in points if one.transport == "homa"]
    found = {f"simulated_{percentile}": _simulated(homa, percentile) for percentile in BOTH}
    if FIGURES[name].varies == "transport":
        found["short"] = _short(points)
        found |= {f"tenths_{percentile}": _tenths(points, percentile) for percentile in BOTH}
    elif FIGURES[name].varies == "levels":
        found["two_to_eight"] = _two_to_eight(homa)
    else:
        found["spread"] = _spread(homa)
    return found


def _known(values: Iterable[float | None]) -> list[float]:
    """All of `values`; none if one is missing."""
    found = list(values)
    return [] if None in found else found  # type: ignore[return-value]


def _times(one: Compared, percentile: str) -> list[float | None]:
    """Real ones of all tenths, if the point counts."""
    return [None if one.doubts else row.lab[percentile] for row in one.rows] or [None]


def _simulated(homa: Sequence[Compared], percentile: str) -> float | None:
    """By how many percent the simulator is off, up or down, where it is most."""
    off: list[float | None] = []
    for one in homa:
        ratios = [None if one.doubts else row.ratio(percentile) for row in one.rows] or [None]
        off += [None if ratio is None else 100 * abs(ratio - 1) for ratio in ratios]
    return max(_known(off), default=None)


def _pairs(points: Sequence[Compared]) -> list[tuple[Compared, Compared]]:
    """TCP with 32 streams and Homa, workload by workload."""
    tcp = {one.workload: one for one in points if one.transport == "tcp"}
    homa = [one for one in points if one.transport == "homa"]
    return [(tcp[one.workload], one) for one in homa if one.workload in tcp]


def _short(points: Sequence[Compared]) -> float | None:
    """P99 of the shortest tenth, TCP's to Homa's, as a part of the published ratio; the least."""
    theirs, parts = published()["atc"], []
    for tcp, homa in _pairs(points):
        paper = theirs["tcp"][homa.workload][1] / theirs["homa"][homa.workload][1]
        ratio = divided(_times(tcp, "p99")[0], _times(homa, "p99")[0])
        parts.append(None if ratio is None else ratio / paper)
    return min(_known(parts), default=None)


def _tenths(points: Sequence[Compared], percentile: str) -> float | None:
    """Homa's to TCP's, of the tenth of a workload in which it is greatest."""
    ratios: list[float | None] = []
    for tcp, homa in _pairs(points):
        both = zip_longest(_times(homa, percentile), _times(tcp, percentile))
        ratios += [divided(ours, theirs) for ours, theirs in both]
    return max(_known(ratios), default=None)


def _two_to_eight(homa: Sequence[Compared]) -> float | None:
    """P99 of the shortest tenth with two levels to that with eight."""
    by = {one.levels: _times(one, "p99")[0] for one in homa}
    return divided(by.get(2), by.get(8))


def _spread(homa: Sequence[Compared]) -> float | None:
    """P99 of the shortest tenth, the greatest of the loads to the least."""
    known = _known(_times(one, "p99")[0] for one in homa)
    return max(known) / min(known) if len(known) == len(SHARES) else None
