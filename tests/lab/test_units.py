# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import pytest

from lab import units
from lab.errors import UsageError


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("200mbit", 200_000_000),
        ("1gbit", 10**9),
        ("2.5g", 2_500_000_000),
        ("1000000", 10**6),
        (" 40Gbps ", 40 * 10**9),
    ],
)
def test_parse_rate(text: str, bps: int) -> None:
    assert units.parse_rate(text) == bps


@pytest.mark.parametrize(
    "text", ["", "fast", "200mb", "-1gbit", "0", "1kbit", "900gbit", "1e9", "nan"]
)
def test_parse_rate__refuses_with_a_remedy(text: str) -> None:
    with pytest.raises(UsageError, match="200mbit|1mbit to 400gbit"):
        units.parse_rate(text)


def test_format_us() -> None:
    assert [units.format_us(v) for v in (None, 4.25, 48.31, 999, 4151, 1.2e6)] == [
        "–",
        "4.25 µs",
        "48.3 µs",
        "999 µs",
        "4.15 ms",
        "1.2 s",
    ]


def test_format_bytes() -> None:
    assert [units.format_bytes(v) for v in (53, 315, 6387, 120373, 999_999, 1_000_000)] == [
        "53",
        "315",
        "6.39K",
        "120K",
        "1M",
        "1M",
    ]


def test_format_ratio() -> None:
    assert [units.format_ratio(v) for v in (None, 0.927, 4.71, 38.2, 1234)] == [
        "–",
        "0.93",
        "4.7",
        "38",
        "1,234",
    ]


def test_format_percent() -> None:
    assert [units.format_percent(v) for v in (None, 0, 0.123, 2.77, 9.96, 42.1, 99.7, 100)] == [
        "–",
        "0",
        "0.12",
        "2.8",
        "10",
        "42",
        "100",
        "100",
    ]
