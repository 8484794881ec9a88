# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What ./homa bench tas cores makes of reports; no program is started."""

from __future__ import annotations

import pytest

from lab.bench import tas_cores
from lab.bench.cores_line import LEVELS, PART_S, Answers, Threads
from lab.bench.tas_cores import SCALED, WAYS, Line, Series
from lab.errors import LabError, UsageError

SECONDS = 1.0
PARTS = round(len(LEVELS) * SECONDS / PART_S)


def _part(count: int, ns: int) -> dict:
    return {"values": [ns], "counts": [count], "count": count, "sum": count * ns, "min": ns, "max": ns}  # fmt: skip


def _document(begins: float, parts: list[dict]) -> dict:
    return {
        "schema": "homa-flows/1",
        "wrong": 0,
        "failed": 0,
        "bytes": sum(part["count"] for part in parts),
        "opened_at_s": begins,
        "part_s": PART_S,
        "parts": parts,
    }


def _steady(count: int = 2000, ns: int = 1000) -> Answers:
    return Answers.of([_document(50.0, [_part(count, ns)] * PARTS)])


def test_levels__each_has_its_own_parts() -> None:
    """A second client in the levels 1 to 7 adds its answers there alone."""
    second = _document(51.0, [_part(500, 3000)] * round(7 * SECONDS / PART_S))
    first = _document(50.0, [_part(2000, 1000)] * PARTS)
    threads = Threads()
    for tenth in range(90):
        threads.saw(50.0 + tenth / 10, 1 if tenth < 20 else 2)
    levels = list(Answers.of([second, first]).levels(SECONDS, threads))
    assert [round(one["rate"]) for one in levels] == [20_000, *[25_000] * 7, 20_000]
    assert levels[0]["p99_us"] == pytest.approx(1, rel=1e-3)
    assert levels[4]["p50_us"] == pytest.approx(1, rel=1e-3)
    assert levels[4]["p99_us"] == pytest.approx(3, rel=1e-3)
    assert levels[0]["samples"] == 16_000
    assert [one["threads"] for one in levels] == [1, 1, *[2] * 7]


def test_levels__no_percentile_from_few_samples() -> None:
    level = next(_steady(count=100).levels(SECONDS, Threads()))
    assert level["samples"] == 800 and "p99_us" not in level and "threads" not in level


def test_spike__the_highest_median_to_the_one_before() -> None:
    parts = [_part(2000, 1000)] * PARTS
    parts[32] = _part(2000, 1300)
    answers = Answers.of([_document(50.0, parts)])
    found = answers.spike(53.22)
    assert found and found.ratio == pytest.approx(1.3, rel=2e-3)
    assert found.more_us == pytest.approx(0.3, rel=1e-2)
    calm = answers.spike(56.0)
    assert calm and calm.ratio == 1
    # Nothing was before the first part.
    assert answers.spike(50.05) is None


def test_rises__when_there_is_one_more() -> None:
    threads = Threads()
    for at, count in ((1.0, 1), (2.0, 2), (3.0, 2), (4.0, 1), (5.0, 2)):
        threads.saw(at, count)
    assert threads.rises() == [2.0, 5.0]
    assert threads.mean(2.0, 5.0) == pytest.approx(5 / 3)
    assert threads.mean(9.0, 10.0) is None


def test_line__values_by_level_and_spikes() -> None:
    threads = Threads()
    threads.saw(52.0, 1)
    threads.saw(53.0, 2)
    line = Line(_steady(), threads)
    values = line.values(1000.0, SECONDS)
    assert values["0.offered"] == 1000 and values["4.offered"] == 5000
    assert values["rises"] == values["spikes"] == 1 and values["spike"] == 1
    drawn = line.as_json()
    assert drawn["threads"] == [[2.0, 1], [3.0, 2]]
    assert drawn["parts"][0] == [0.0, 2000, pytest.approx(1, rel=1e-3)]
    assert len(drawn["parts"]) == PARTS


def test_answers__a_report_that_is_not_whole() -> None:
    whole = _document(50.0, [_part(1, 1)])
    for broken in (
        {**whole, "schema": "x"},
        {**whole, "wrong": 1},
        {**whole, "failed": 2},
        {**whole, "bytes": 0},
    ):
        with pytest.raises(LabError):
            Answers.of([broken])
    with pytest.raises(LabError, match="no client"):
        Answers.of([])


def test_as_json__a_place_for_each_level() -> None:
    line = Line(_steady(), Threads())
    one = Series(WAYS[0], [line.values(1000.0, SECONDS), None], [line.as_json()], "round 2: x")
    here = tas_cores.machine.describe()
    document = tas_cores.as_json([one], here, SECONDS)
    assert document["cases"][SCALED]["4"]["rate"]["median"] == pytest.approx(20_000)
    assert document["problems"] == {SCALED: "round 2: x"}
    assert document["clients"] == list(LEVELS)


def test_check__ways_and_lengths() -> None:
    assert tas_cores.check("", 1, 1.0) == list(WAYS)
    assert [way.key for way in tas_cores.check("kernel,scaled", 1, 1.0)] == ["kernel", "scaled"]
    with pytest.raises(UsageError, match="cores has scaled, one, all, kernel"):
        tas_cores.check("two", 1, 1.0)
    for seconds in (0.2, 60.0):
        with pytest.raises(UsageError, match="for each level"):
            tas_cores.check("", 1, seconds)
