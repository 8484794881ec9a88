# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import random

import pytest

from lab.bench.histogram import Histogram, bucket_top, merge


def record(values: list[int]) -> Histogram:
    """A histogram as homa-bench would write it."""
    counts: dict[int, int] = {}
    for value in values:
        shift = max(0, value.bit_length() - 11)
        floor = value >> shift << shift
        counts[floor] = counts.get(floor, 0) + 1
    data = {
        "values": sorted(counts),
        "counts": [counts[v] for v in sorted(counts)],
        "count": len(values),
        "sum": sum(values),
        "min": min(values, default=0),
        "max": max(values, default=0),
    }
    return Histogram.from_json(data)


def test_bucket_top__small_values_are_exact() -> None:
    assert [bucket_top(v) for v in (0, 1, 2047)] == [0, 1, 2047]
    assert bucket_top(2048) == 2049
    assert bucket_top(4096) == 4099


def test_percentile__within_a_thousandth_of_the_exact_one() -> None:
    rng = random.Random(7)
    values = sorted(int(rng.lognormvariate(12, 2)) for _ in range(20_000))
    histogram = record(values)
    for percent in (1, 50, 90, 99, 99.9, 100):
        exact = values[min(len(values), -(-len(values) * percent // 100).__int__()) - 1]
        assert exact <= histogram.percentile(percent) <= exact * 1.001 + 1
    assert histogram.percentile(0) == values[0]
    assert histogram.percentile(100) == values[-1]


def test_merge__equals_one_histogram_of_everything() -> None:
    rng = random.Random(3)
    parts = [[rng.randrange(1, 10**9) for _ in range(n)] for n in (1000, 1, 0, 500)]
    together = record([value for part in parts for value in part])
    assert merge(map(record, parts)) == together


def test_empty() -> None:
    empty = record([])
    assert empty.percentile(99) is None
    assert empty.mean() is None
    assert merge([empty, empty]).count == 0


@pytest.mark.parametrize(
    "damage", [{"counts": [1]}, {"count": 9}, {"values": "12"}, {"counts": [1, "x"]}]
)
def test_from_json__refuses_what_does_not_add_up(damage: dict) -> None:
    good = {"values": [5, 9], "counts": [1, 2], "count": 3, "sum": 23, "min": 5, "max": 9}
    assert Histogram.from_json(good).count == 3
    with pytest.raises((ValueError, TypeError)):
        Histogram.from_json({**good, **damage})
