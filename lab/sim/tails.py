# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Percentiles with the number of messages behind them; none of fewer than a thousand.

A percentile over several seeds is that of all their messages together, from the histograms that
homa-sim writes: the mean of P99s of few messages each would be too low. The interval is that of
the seeds' own percentiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lab.bench.histogram import Histogram, merge
from lab.sim.stats import Stat, stat

LEAST = 1000  # messages; of fewer no percentile is told
# homa-sim counts slowdowns in thousandths.
SLOWDOWN = 1e-3


@dataclass(frozen=True)
class Few:
    """In place of a Stat: only so many messages, too few for a percentile."""

    samples: int

    def as_json(self) -> dict[str, object]:
        """For a result file."""
        return {"mean": None, "n": self.samples}


def known(value: Stat | Few | None) -> Stat | None:
    """The Stat if there is one."""
    return value if isinstance(value, Stat) else None


def histogram(summary: object) -> Histogram:
    """Of one of homa-sim's summaries; empty if it has none."""
    shape = summary.get("histogram") if isinstance(summary, dict) else None
    return Histogram.from_json(shape) if isinstance(shape, dict) else Histogram()


def tail(seeds: Iterable[Histogram], percent: float, scale: float = SLOWDOWN) -> Stat | Few | None:
    """The percentile of all messages of several seeds; None without a message."""
    some = [one for one in seeds if one.count]
    whole = merge(some)
    if not whole.count:
        return None
    if whole.count < LEAST:
        return Few(whole.count)
    spread = stat(one.percentile(percent) for one in some)
    value = whole.percentile(percent)
    assert value is not None and spread
    half = None if spread.half is None else spread.half * scale
    return Stat(value * scale, half, spread.count, whole.count)


def at(results: Sequence[dict], *place: str) -> list[Histogram]:
    """The histogram at `place` of each result."""
    found = []
    for result in results:
        here: object = result
        for step in place:
            here = here.get(step) if isinstance(here, dict) else None
        found.append(histogram(here))
    return found


def bins(results: Sequence[dict], last: float, first: float = 0.0) -> list[Histogram]:
    """Slowdowns of the messages whose place by size is from `first` to `last`, 0 to 1."""
    found = []
    for result in results:
        rows = result.get("sim", {}).get("bins", [])
        inside = (r for r in rows if r["from"] >= first - 1e-6 and r["to"] <= last + 1e-6)
        found.append(merge(histogram(row) for row in inside))
    return found


def decile(results: Sequence[dict], number: int) -> list[Histogram]:
    """Latencies, ns, of one tenth of the messages, 1 the shortest, of each result."""
    found = []
    for result in results:
        rows = [r for r in result.get("deciles") or [] if r.get("decile") == number]
        found.append(histogram(rows[0].get("latency_ns") if rows else None))
    return found


def ratio(one: Stat | Few | None, other: Stat | Few | None) -> Stat | Few | None:
    """One percentile over another; the smaller number of messages counts."""
    if one is None or other is None:
        return None
    samples = min(one.samples or 0, other.samples or 0)
    if isinstance(one, Few) or isinstance(other, Few):
        return Few(samples)
    if not other.mean:
        return None
    return Stat(one.mean / other.mean, None, min(one.count, other.count), samples)


def with_spread(value: Stat | Few | None, seeds: Iterable[float | None]) -> Stat | Few | None:
    """`value` with the interval of what each seed gives."""
    spread = stat(seeds)
    if not isinstance(value, Stat) or spread is None:
        return value
    return replace(value, half=spread.half)
