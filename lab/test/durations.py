# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which files and tests took longest, from the reports in JUnit's form that a stage has left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from lab.test import again


def slowest(logs: Path, since: float, most: int) -> list[str]:
    """Lines about the `most` slowest files and tests in reports of `logs` that are no older than
    `since` (seconds of time.time()): seconds from start to end, and the name."""
    files: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    reports = [r for r in logs.glob("*.xml") if r.stat().st_mtime >= since] if most else []
    for report in reports:
        for case in again.cases(report):
            seconds = float(case.get("time") or 0)
            files[f"{report.stem} {case.get('classname', '')}"] += seconds
            tests[f"{report.stem} {again.test_of(case)}"] += seconds
    return [
        f"{seconds:7.1f} s  {name}"
        for names in (files, tests)
        for name, seconds in names.most_common(most)
    ]
