# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Histograms as `homa-bench` writes them, merged without loss.

The buckets are those of `common/hist.h` (HdrHistogram's layout with 2,048 sub-buckets): a
percentile of merged histograms is what one histogram of all values would have given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

_SUB_BUCKETS = 2048


def bucket_top(value: int) -> int:
    """The highest value in the bucket of `value`."""
    shift = max(0, value.bit_length() - _SUB_BUCKETS.bit_length() + 1)
    return ((value >> shift) + 1 << shift) - 1


@dataclass
class Histogram:
    """Counts by the lowest value of each bucket, usually ns; `total` is the sum of all values."""

    counts: dict[int, int] = field(default_factory=dict)
    count: int = 0
    total: int = 0
    low: int = 0
    high: int = 0

    @classmethod
    def from_json(cls, data: dict[str, object]) -> Histogram:
        """From {"values": [], "counts": [], "count", "sum", "min", "max"}; ValueError if odd."""
        values, counts = data["values"], data["counts"]
        if (
            not isinstance(values, list)
            or not isinstance(counts, list)
            or len(values) != len(counts)
        ):
            raise ValueError("a histogram needs as many counts as values")
        result = cls(
            dict(zip(map(int, values), map(int, counts), strict=True)),
            int(data["count"]),  # type: ignore[call-overload]
            int(data["sum"]),  # type: ignore[call-overload]
            int(data.get("min", 0)),  # type: ignore[call-overload]
            int(data.get("max", 0)),  # type: ignore[call-overload]
        )
        if sum(result.counts.values()) != result.count:
            raise ValueError(
                f"a histogram says count {result.count} but its buckets have another sum"
            )
        return result

    def percentile(self, percent: float) -> float | None:
        """The value that `percent` of all values do not exceed; None if empty."""
        if not self.count:
            return None
        if percent <= 0:
            return self.low
        rank = min(self.count, max(1, math.ceil(self.count * percent / 100 - 1e-6)))
        seen = 0
        for value in sorted(self.counts):
            seen += self.counts[value]
            if seen >= rank:
                return min(bucket_top(value), self.high)
        return self.high

    def mean(self) -> float | None:
        """The exact mean; None if empty."""
        return self.total / self.count if self.count else None


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """All values of all `histograms` in one."""
    result = Histogram()
    for one in histograms:
        if not one.count:
            continue
        for value, count in one.counts.items():
            result.counts[value] = result.counts.get(value, 0) + count
        result.low = min(result.low, one.low) if result.count else one.low
        result.high = max(result.high, one.high)
        result.count += one.count
        result.total += one.total
    return result
