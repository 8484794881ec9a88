# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test --tcp-suites`: what counts as an extra failure, from reports as the suites write them."""

from __future__ import annotations

from lab.test import suites

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
