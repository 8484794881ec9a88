# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Numbers for people: few digits, fixed width."""

from __future__ import annotations


def number(value: float) -> str:
    """1234567 as "1.23M": at most five characters up to 999 T."""
    if value < 0:
        return "-" + number(-value)
    for unit in ("", "k", "M", "G", "T"):
        if value < 999.5:
            return _three(value, unit)
        value /= 1000
    return f"{value:.0f}P"


def _three(value: float, unit: str) -> str:
    if value == int(value) and not unit:
        return str(int(value))
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}{unit}"


def duration(ns: float | None) -> str:
    """A time in ns with its unit: "12.3us"."""
    if ns is None:
        return "-"
    for unit, size in (("ns", 1e3), ("us", 1e3), ("ms", 1e3)):
        if ns < 999.5:
            return _three(ns, "") + unit
        ns /= size
    if ns < 99.95:
        return _three(ns, "") + "s"
    return age(int(ns))


def age(seconds: int) -> str:
    """A long time: "3h05m"."""
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days}d{hours:02}h"
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds % 60:02}s"


def size(count: int) -> str:
    """A number of bytes in binary units: "64K"."""
    value = float(count)
    for unit in ("", "K", "M", "G"):
        if value < 1024:
            return _three(value, "") + unit
        value /= 1024
    return f"{value:.0f}T"
