# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What test-suites print as they run, in the words of a report: "begun NAME", "passed NAME", "failed NAME" and
"skipped NAME". tests/tcp/suite_run.py writes reports, lab/test/suites.py reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_TAP = re.compile(r"^(not ok|ok) (\d+)\b(.*)$")
_CURL = re.compile(r"^test (\d+)\.\.\.")
# runtests.pl ends the line of a test that has passed so.
_CURL_PASSED = re.compile(r"\bOK \(\d+ +out of \d+")


def tap(file: str, lines: Iterable[str]) -> Iterator[str]:
    """Of one program that speaks the Test Anything Protocol: each of its tests has its number as its name."""
    for line in lines:
        match = _TAP.match(line)
        if not match:
            continue
        result, number, rest = match.groups()
        skipped = re.search(r"#\s*skip\b", rest, re.IGNORECASE)
        what = "skipped" if skipped else "passed" if result == "ok" else "failed"
        yield f"{what} {file} {number}"


def curl(lines: Iterable[str]) -> Iterator[str]:
    """Of curl's runtests.pl with -a -s: a test begins with its number, says what fails, and ends with OK unless
    something has failed."""
    current = ""
    for line in lines:
        match = _CURL.match(line)
        if match:
            if current:
                yield f"failed {current}"
            current = match.group(1)
            yield f"begun {current}"
        if current and _CURL_PASSED.search(line):
            yield f"passed {current}"
            current = ""
        elif current and line.startswith("TESTDONE"):
            yield f"failed {current}"
            current = ""
