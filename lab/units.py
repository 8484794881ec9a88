# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Rates, sizes and times as people write them, in and out."""

from __future__ import annotations

import re

from lab.errors import UsageError

_RATE = re.compile(r"^(\d+(?:\.\d+)?)\s*([kmg]?)(?:bit|bps)?$", re.IGNORECASE)
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def parse_rate(text: str) -> int:
    """Bits per second in `text`, as in "200mbit", "1gbit" or "25g"."""
    match = _RATE.match(text.strip())
    if not match:
        raise UsageError(f"link rate '{text}' is not a rate; write it like 200mbit or 1gbit")
    rate = int(float(match[1]) * _SCALE[match[2].lower()])
    if not 10**6 <= rate <= 400 * 10**9:
        raise UsageError(f"link rate '{text}' is out of range; use 1mbit to 400gbit")
    return rate


def format_rate(bps: float) -> str:
    """`bps` bits per second with three digits: "160 Mbit/s"."""
    for scale, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bps >= scale:
            return f"{_three_digits(bps / scale)} {unit}"
    return f"{bps:.0f} bit/s"


def format_bytes(count: float) -> str:
    """`count` bytes the way axis labels show them: "315", "6.4K", "1M"."""
    for scale, unit in ((1e6, "M"), (1e3, "K")):
        if count >= scale * 0.9995:
            return f"{_three_digits(count / scale)}{unit}"
    return f"{count:.0f}"


def format_us(us: float | None) -> str:
    """`us` microseconds with a fitting unit: "48.3 µs", "4.15 ms", "1.2 s"."""
    if us is None:
        return "–"
    if us >= 1e6:
        return f"{_three_digits(us / 1e6)} s"
    if us >= 1e3:
        return f"{_three_digits(us / 1e3)} ms"
    return f"{_three_digits(us)} µs"


def format_ratio(value: float | None) -> str:
    """A ratio with the digits it deserves: "0.93", "4.7", "38"."""
    if value is None:
        return "–"
    if value >= 20:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 3 else f"{value:.2f}"


def format_percent(value: float | None) -> str:
    """A share of `value` percent with two digits, whole if it has more: "0", "0.12", "2.8", "42", "100"."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    text = f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".")
