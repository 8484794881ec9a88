# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Run one module of CPython's own tests: python_suite.py MODULE FILE. Into FILE goes a line for each test as it
ends, its name and what came of it, so that what hangs or crashes leaves what came before."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterator
from typing import TextIO

from test import support


class Lines(unittest.TextTestResult):
    """Writes a line for each test."""

    out: TextIO

    def _say(self, test: unittest.TestCase, what: str) -> None:
        self.out.write(f"{what} {test.id()}\n")
        self.out.flush()

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._say(test, "begun")

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self._say(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._say(test, "skipped")

    def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:
        super().addExpectedFailure(test, err)  # type: ignore[arg-type]
        self._say(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        super().addFailure(test, err)  # type: ignore[arg-type]
        self._say(test, "failed")

    def addError(self, test: unittest.TestCase, err: object) -> None:
        super().addError(test, err)  # type: ignore[arg-type]
        self._say(test, "failed")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: object) -> None:
        super().addSubTest(test, subtest, err)  # type: ignore[arg-type]
        if err is not None:
            self._say(test, "failed")


# In a virtual machine these wait for a host that never answers, with any TCP.
SKIPPED = ("VSOCK",)


def chosen(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """The tests of a module without those that say nothing of TCP and may never end."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test)
        elif not any(word in test.id() for word in SKIPPED):
            yield test


def main() -> int:
    module, path = sys.argv[1:3]
    support.use_resources = ["network"]  # sockets; there is no Internet in a namespace
    support.verbose = True
    with open(path, "w", encoding="utf-8") as out:
        Lines.out = out
        found = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
        suite = unittest.TestSuite(chosen(found))
        unittest.TextTestRunner(verbosity=2, resultclass=Lines).run(suite)
    return 0


if __name__ == "__main__":
    sys.exit(main())
