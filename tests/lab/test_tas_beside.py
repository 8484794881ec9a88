# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What ./homa bench tas beside makes of reports; no program is started."""

from __future__ import annotations

import pytest

from lab.bench import tas_beside
from lab.bench.tas_beside import ALONE, CASES, LINKS, Series
from lab.errors import LabError, UsageError

BY_KEY = {case.key: case for case in CASES}
STREAM = {"failed": 0, "bytes": 10, "bits_per_s": 5e8}


def _series() -> list[Series]:
    values: dict[str, list[dict[str, float] | None]] = {
        ALONE: [{"p50_us": 10, "p99_us": 20}, {"p50_us": 10, "p99_us": 40}, None],
        "homad": [
            {"p50_us": 20, "p99_us": 60, "bits_per_s": 8e8},
            {"p50_us": 10, "p99_us": 40, "bits_per_s": 5e8},
            {"p50_us": 10, "p99_us": 40, "bits_per_s": 9e8},
        ],
        "stream-homad": [{"bits_per_s": 1e9}, {"bits_per_s": 1e9}, {"bits_per_s": 1e9}],
        "kernel": [None, None, None],
        "stream-kernel": [{"bits_per_s": 1e9}, None, None],
    }
    return [Series(LINKS[0], case, values[case.key]) for case in CASES]


def test_to_alone__round_by_round() -> None:
    found = tas_beside.to_alone(_series())
    assert found["veth.homad"]["p99"]["rounds"] == [3, 1]
    assert found["veth.homad"]["p50"]["rounds"] == [2, 1]
    assert found["veth.homad"]["lost"]["rounds"] == pytest.approx([0.2, 0.5, 0.1])
    assert found["veth.kernel"] == {}


def test_as_json__a_place_for_the_target() -> None:
    series = _series()
    here = tas_beside.machine.describe()
    document = tas_beside.as_json(series, tas_beside.to_alone(series), here, 3.0)
    assert document["ratios"]["veth"]["homad"]["p99"]["median"] == 2
    assert document["cases"]["veth.homad"]["bits_per_s"]["median"] == 8e8


def test_extract__streams() -> None:
    case = BY_KEY["stream-homad"]
    assert tas_beside.extract(None, STREAM, case) == {"bits_per_s": 5e8}
    for broken in (None, {**STREAM, "failed": 1}, {**STREAM, "bytes": 0}):
        with pytest.raises(LabError, match="carried nothing"):
            tas_beside.extract(None, broken, case)


def test_check__links_and_samples() -> None:
    assert tas_beside.check("", 1, 2.0) == list(LINKS)
    assert tas_beside.check("1000", 1, 2.0) == [LINKS[1]]
    with pytest.raises(UsageError, match="beside has veth, 1000"):
        tas_beside.check("10", 1, 2.0)
    with pytest.raises(UsageError, match="or more"):
        tas_beside.check("veth", 1, 0.5)
