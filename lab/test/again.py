# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A second chance for a few failed tests of a run by pytest, for continuous integration.

A test that fails once and passes at once afterwards is a fault, of the test or of what it tests.
It is named in the result, with what it said, so that it is looked for; but it does not hold up
work that has nothing to do with it. A report of a sanitizer or of a kernel is never a chance's
doing and gets no second one, nor does a run in which many tests fail.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

from lab.test.context import ROOT, Tally
from lab.vm import klog

# Tests of one run by pytest that may be run again. A guest that many tests share counts for all.
MOST = 12
HARD = ("Sanitizer", "runtime error:", "the kernel complained")

Case = ElementTree.Element


def cases(report: Path) -> list[Case]:
    """The cases of a report in JUnit's form; none if pytest ended before it wrote one."""
    return list(ElementTree.parse(report).getroot().iter("testcase")) if report.exists() else []


def count(tally: Tally, found: Iterable[Case]) -> None:
    for case in found:
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        bad = [*case.iter("failure"), *case.iter("error")]
        skips = list(case.iter("skipped"))
        if bad:
            tally.fail(name, said(case))
        elif skips:
            tally.skip(name, skips[0].get("message", ""))
        else:
            tally.passed += 1


def said(case: Case) -> str:
    """What a failed case said; empty if it passed."""
    bad = [*case.iter("failure"), *case.iter("error")]
    return (bad[0].text or bad[0].get("message", "")) if bad else ""


def test_of(case: Case) -> str:
    """The test, as pytest takes it on its command line, that a case belongs to: a script in a
    guest reports many cases, each named TEST::CASE."""
    file = case.get("classname", "").replace(".", "/") + ".py"
    name, bracket, rest = case.get("name", "").partition("[")
    if bracket:
        return f"{file}::{name}[{rest.partition(']')[0]}]"
    return f"{file}::{name}"


def is_report(text: str) -> bool:
    """Does it speak of what is never chance? A kernel that goes down says so in its own words."""
    return any(word in text for word in HARD) or bool(klog.problems(text))


def worth(found: Iterable[Case]) -> list[str]:
    """The tests to run again; none if that would hide something."""
    bad = [case for case in found if said(case)]
    tests = list(dict.fromkeys(test_of(case) for case in bad))
    if len(tests) > MOST or any(is_report(said(case)) for case in bad):
        return []
    return tests if all((ROOT / test.partition("::")[0]).exists() for test in tests) else []


def name_of(case: Case) -> tuple[str, str]:
    return case.get("classname", ""), case.get("name", "")


def unproven(first: Iterable[Case], second: Iterable[Case]) -> set[str]:
    """Tests of which a case that failed did neither pass nor fail the second time: it was left
    out, which says nothing."""
    told = {name_of(case) for case in second if not list(case.iter("skipped"))}
    return {test_of(case) for case in first if said(case) and name_of(case) not in told}


def merge(tally: Tally, first: Iterable[Case], second: Iterable[Case]) -> None:
    """Count `first` without the tests that were run again, and `second` for those. What passed
    the second time is named as unsteady, with the end of what it had said."""
    first, second = list(first), list(second)
    unknown = unproven(first, second)
    second = [case for case in second if test_of(case) not in unknown]
    repeated = {test_of(case) for case in second}
    still = {test_of(case) for case in second if said(case)}
    count(tally, (case for case in first if test_of(case) not in repeated))
    count(tally, second)
    told = {test_of(case): said(case) for case in first if said(case)}
    for test in sorted(repeated - still):
        last = (told.get(test, "").strip().splitlines() or [""])[-1]
        tally.unsteady.append(f"{test}: {last}")
