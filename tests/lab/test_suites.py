# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test --tcp-suites`: what counts as an extra failure, from reports as the suites write them."""

from __future__ import annotations

from lab.test import suite_lines, suites

KERNEL = "begun a\npassed a\nbegun b\npassed b\nbegun c\nfailed c\nbegun d\npassed d\nkernel 7\n"


def test_same__has_no_extra_failures() -> None:
    kernel = suites.parse(KERNEL, True)
    assert (kernel.kernels, kernel.ended, kernel.count("passed")) == (7, True, 3)
    assert suites.extra_failures(kernel, kernel) == []


def test_each_other_end__is_an_extra_failure() -> None:
    """One that fails, one that hangs, one that was not reached; not the one that fails anyway."""
    homad = suites.parse("begun a\nfailed a\nbegun c\npassed c\nbegun b\n", True)
    assert not homad.ended
    assert suites.extra_failures(suites.parse(KERNEL, True), homad) == [
        "a: failed",
        "b: did not end",
        "d: was not run",
    ]


def test_subtest__fails_its_test() -> None:
    assert suites.parse("begun a\nfailed a\npassed a\n", True).tests == {"a": "failed"}


def test_tap__names_tests_by_their_numbers() -> None:
    said = ["1..4\n", "ok 1 - a\n", "not ok 2 - b\n", "# told\n", "ok 3 # skip no c\n", "ok 4\n"]
    assert list(suite_lines.tap("x.t", said)) == [
        "passed x.t 1",
        "failed x.t 2",
        "skipped x.t 3",
        "passed x.t 4",
    ]


CURL = """********* System characteristics ********
test 0001...OK (1   out of 4, remaining: 00:01, took 0.1s, duration: 00:00)
test 0002...
 2: data FAILED:
--- log/check-expected
test 0003...--pd---e--- OK (3   out of 4, remaining: 00:00, took 0.1s, duration: 00:01)
test 0004...
"""


def test_curl__has_failed_what_is_not_ok() -> None:
    """The last one has not ended, unless the summary says that all have."""
    ends = ["begun 0001", "passed 0001", "begun 0002", "failed 0002"]
    ends += ["begun 0003", "passed 0003", "begun 0004"]
    assert list(suite_lines.curl(CURL.splitlines())) == ends
    assert list(suite_lines.curl([*CURL.splitlines(), "TESTDONE: 4 tests"])) == [
        *ends,
        "failed 0004",
    ]
