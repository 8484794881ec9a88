# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""tools/text.py, rates.py, screen.py: numbers that fit, rates that are right, a picture of 80x24."""

from __future__ import annotations

import copy

import pytest
from tools import rates, screen, text
from ops_fake import snapshot

NUMBERS = [
    (0, "0"), (7, "7"), (999, "999"), (1000, "1.00k"), (99_960, "100k"), (1_234_567, "1.23M"),
    (0.25, "0.25"), (-1500, "-1.50k"), (999.6, "1.00k"),
]  # fmt: skip
DURATIONS = [
    (None, "-"),
    (5, "5ns"),
    (1234, "1.23us"),
    (12_345_678, "12.3ms"),
    (5e9, "5s"),
    (4e12, "1h06m"),
]


@pytest.mark.parametrize(("value", "shown"), NUMBERS)
def test_number(value: float, shown: str) -> None:
    assert text.number(value) == shown


@pytest.mark.parametrize(("ns", "shown"), DURATIONS)
def test_duration(ns: float | None, shown: str) -> None:
    assert text.duration(ns) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0"), (1023, "1023"), (65536, "64K"), (3 << 30, "3G")]
)
def test_size(count: int, shown: str) -> None:
    assert text.size(count) == shown


def test_rates__are_differences_over_the_time() -> None:
    before, after = snapshot("before"), snapshot("after")
    got = rates.between(before, after)
    seconds = (after["time_ns"] - before["time_ns"]) / 1e9
    sent = after["engine"]["requests_sent"] - before["engine"]["requests_sent"]
    assert sent > 0
    assert got.engine["requests_sent"] == pytest.approx(sent / seconds)
    bytes_in = (
        after["apps"][-1]["counters"]["rx_bytes"] - before["apps"][-1]["counters"]["rx_bytes"]
    )
    assert got.apps[-1].rx_bytes == pytest.approx(bytes_in / seconds)
    assert 0 < got.threads[0].cpu <= 1.01


def test_rates__a_new_attachment_counts_from_nothing() -> None:
    before, after = snapshot("before"), snapshot("after")
    before["apps"] = []
    got = rates.between(before, after)
    assert got.apps[-1].delivered == pytest.approx(
        after["apps"][-1]["counters"]["delivered"] / got.seconds
    )


def test_latency__only_of_what_ended_in_between() -> None:
    before = {"values": [10, 20], "counts": [100, 1]}
    after = {"values": [10, 20, 30], "counts": [100, 2, 98]}
    got = rates.latency(before, after)
    assert (got.count, got.p50, got.p99, got.max) == (99, 30, 30, 30)
    assert got.mean == pytest.approx((20 + 98 * 30) / 99)
    assert rates.latency(after, after).p99 is None


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (20, 5), (200, 60)])
def test_screen__fits(width: int, height: int) -> None:
    after = snapshot("after")
    after["apps"] = [dict(after["apps"][-1], app=i, name="a" * i) for i in range(40)]
    after["threads"] = [dict(after["threads"][0], thread=i) for i in range(16)]
    before = copy.deepcopy(after)
    rows = screen.lines(rates.between(before, after), width, height)
    assert 0 < len(rows) <= height
    assert max(len(row.plain) for row in rows) <= width


def test_screen__says_what_matters() -> None:
    rows = screen.lines(rates.between(snapshot("before"), snapshot("after")), 80, 24)
    shown = "\n".join(row.plain for row in rows)
    for word in ("homad", "p99", "grants/s", "thread", "udp", "raw", "q quits"):
        assert word in shown


def test_screen__sorted_by_what_was_asked_for() -> None:
    after = snapshot("after")
    one = after["apps"][-1]
    after["apps"] = [
        dict(one, app=1, name="many", counters=dict(one["counters"], requests=1000, tx_bytes=10)),
        dict(one, app=2, name="large", counters=dict(one["counters"], requests=10, tx_bytes=10**9)),
    ]
    before = copy.deepcopy(after)
    for app in before["apps"]:
        app["counters"] = dict.fromkeys(app["counters"], 0)
    for app in after["apps"]:
        app["counters"] = {
            k: v if k in ("requests", "tx_bytes") else 0 for k, v in app["counters"].items()
        }
    picture = rates.between(before, after)
    for sort, first in (("r", "many"), ("b", "large")):
        shown = "\n".join(row.plain for row in screen.lines(picture, 80, 24, sort))
        assert shown.index(first) < shown.index("many" if first == "large" else "large")
