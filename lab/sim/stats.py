# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Means over seeds and how far they can be trusted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

# Student's t, two-sided 95 %, for 1 to 30 degrees of freedom (any table of statistics).
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960


def t95(freedom: int) -> float:
    """Half width of a 95 % interval in standard errors; above 30 an upper bound is used."""
    if freedom < 1:
        return math.inf
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    return max(_NORMAL, _T95[-1] * (1 - 0.0004 * min(freedom - 30, 90)))


@dataclass(frozen=True)
class Stat:
    """A mean of `count` runs and the half width of its 95 % confidence interval (None: one run).

    `samples`: how many messages stand behind it, where it is a percentile (see tails).
    """

    mean: float
    half: float | None
    count: int
    samples: int | None = None

    @property
    def low(self) -> float:
        """Lower end of the interval (the mean if there is none)."""
        return self.mean - (self.half or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + (self.half or 0.0)

    def as_json(self) -> dict[str, object]:
        """For a result file."""
        said: dict[str, object] = {"mean": self.mean, "ci95": self.half, "runs": self.count}
        return said if self.samples is None else {**said, "n": self.samples}

    def text(self, digits: int = 2) -> str:
        """ "1.85 ± 0.04"."""
        if self.half is None:
            return f"{self.mean:,.{digits}f}"
        return f"{self.mean:,.{digits}f} ± {self.half:,.{digits}f}"


def stat(values: Iterable[float | None]) -> Stat | None:
    """Mean and interval of what is not None; None if nothing is left."""
    found = [float(v) for v in values if v is not None and math.isfinite(v)]
    if not found:
        return None
    mean = statistics.fmean(found)
    if len(found) == 1:
        return Stat(mean, None, 1)
    half = t95(len(found) - 1) * statistics.stdev(found) / math.sqrt(len(found))
    return Stat(mean, half, len(found))


def geometric(values: Iterable[float | None]) -> float | None:
    """Geometric mean of the positive ones."""
    logs = [math.log(v) for v in values if v is not None and v > 0]
    return math.exp(statistics.fmean(logs)) if logs else None
