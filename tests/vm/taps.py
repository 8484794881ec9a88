# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What programs and scripts in guests print (TAP), as test cases of pytest.

One guest makes many checks, so a test function becomes as many cases as its guest reported:

    def test_lo(guest, tap):
        tap(guest(script("lo.sh"), "rpc", files=...))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.test.tap import Case, parse
from lab.vm import Options, Result

HERE = Path(__file__).resolve().parent
BUILD_FILES = {f"t/{p.name}": p for p in (HERE / "guest").glob("*.sh")}
Tap = Callable[[Result], None]


def options(given: Options | None = None) -> Options:
    """`given` and the scripts of tests/vm/guest in /t."""
    made = given or Options()
    return replace(made, files={**BUILD_FILES, **made.files})


def _announce(item: pytest.Item, case: Case) -> None:
    """A case of its own in every report pytest writes."""
    outcome = {"passed": "passed", "failed": "failed", "skipped": "skipped"}[case.outcome]
    text = "\n".join(case.notes) or case.name
    path, line, _ = item.location
    for when in ("setup", "call", "teardown"):
        told = when == "call"
        longrepr: object = None
        if told and outcome == "failed":
            longrepr = text
        elif told and outcome == "skipped":
            longrepr = (path, line or 0, f"Skipped: {text}")
        report = pytest.TestReport(
            nodeid=f"{item.nodeid}::{case.name}",
            location=(path, line, f"{item.name}: {case.name}"),
            keywords={},
            outcome=outcome if told else "passed",  # type: ignore[arg-type]
            longrepr=longrepr,  # type: ignore[arg-type]
            when=when,  # type: ignore[arg-type]
        )
        item.ihook.pytest_runtest_logreport(report=report)


def show(item: pytest.Item, output: str) -> None:
    """Each case of a guest's output to pytest; the test fails if one did or if some are missing."""
    parsed = parse(output)
    print(output)  # shown if something fails, and with -s
    for case in parsed.cases:
        _announce(item, case)
    failed = [f"{c.name}: {' '.join(c.notes[:2])}" for c in parsed.cases if c.outcome == "failed"]
    if not parsed.cases or len(parsed.cases) < parsed.planned:
        pytest.fail(f"{len(parsed.cases)} of {parsed.planned} cases reported:\n{output[-3000:]}")
    if failed:
        pytest.fail("\n".join(failed))


@pytest.fixture
def tap(request: pytest.FixtureRequest) -> Tap:
    """Turn a run's output into cases; the kernel's complaints and a bad status fail the test."""

    def check(result: Result) -> None:
        try:
            show(request.node, result.output)
        finally:
            # Also if a case failed, of which this may be the cause.
            assert result.problems == "", f"the kernel complained:\n{result.problems}"
        assert result.status == 0, result.output[-3000:]

    return check
