# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How far the pairings of homad and Linux lie apart, as ./homa bench tas interop tells it."""

from __future__ import annotations

from lab.bench import tas
from lab.bench.tas_rows import ROWS, WAYS

ROW = next(row for row in ROWS if row.key == "interop")


def _series(*rounds: tuple[float | None, ...]) -> list[tas.Series]:
    """One value of each way in each round; None: it failed."""
    point = ROW.points[0]
    return [
        tas.Series(
            ROW,
            point,
            way,
            [{"bits_per_s": each[n], "jain": 1.0} if each[n] else None for each in rounds],
        )
        for n, way in enumerate(WAYS)
    ]


def test_pairings__largest_to_smallest_round_by_round() -> None:
    found = tas.pairings(
        _series((4e9, 5e9, 2e9, 4e9), (3e9, 3e9, 3e9, 3e9)), "interop", "bits_per_s"
    )
    assert found["interop.100.bits_per_s"]["rounds"] == [2.5, 1.0]


def test_pairings__a_round_without_one_of_them_is_none() -> None:
    assert tas.pairings(_series((4e9, 5e9, None, 4e9)), "interop", "bits_per_s") == {}
    found = tas.pairings(
        _series((4e9, None, 2e9, 4e9), (3e9, 3e9, 3e9, 6e9)), "interop", "bits_per_s"
    )
    assert found["interop.100.bits_per_s"]["rounds"] == [2.0]


def test_document__a_place_for_the_target() -> None:
    series = _series((4e9, 5e9, 2e9, 4e9))
    document = tas.as_json(series, {}, tas.machine.describe(), 1.0)
    assert document["pairings"]["interop"]["100"]["bits_per_s"]["median"] == 2.5
    assert tas.as_json([], {}, tas.machine.describe(), 1.0)["pairings"] == {}
