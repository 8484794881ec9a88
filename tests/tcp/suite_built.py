# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Suites of programs that are built for them (lab/test/suite_sources.py): curl's and memcached's, on one host each. All
processes of a suite, servers, clients and the scripts that start them, are on the side that is given."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lab.test import suite_lines
from ways import Side

# Of curl's: over UDP; of single functions of its library.
CURL_WITHOUT = ("!TFTP", "!unittest")
CURL_SECONDS = 1500
FILE_SECONDS = 120


def folder() -> Path:
    return Path(os.environ["HOMA_SUITE_FOLDER"])


def run(side: Side, where: Path, seconds: int, words: str, into: Path) -> tuple[int, list[str]]:
    """Its status and its output, which goes through a file: processes that it leaves behind would keep a pipe open."""
    script = f"cd {where} && exec timeout -k 5 {seconds} {words} > {into} 2>&1"
    status = side.start(["/bin/sh", "-c", script]).wait(seconds + 30)[0]
    text = into.read_text(errors="replace")
    sys.stdout.write(text)
    sys.stdout.flush()
    return status, text.splitlines()


def curl(side: Side, report: Path) -> None:
    """runtests.pl goes on after failures (-a), without valgrind (-n), and says little (-s). Without a
    USER it ends at the first test that names one."""
    words = " ".join(
        ["env USER=root perl runtests.pl -a -n -s", *(f"'{word}'" for word in CURL_WITHOUT)]
    )
    said = run(side, folder() / "tests", CURL_SECONDS, words, report.with_suffix(".out"))[1]
    report.write_text("".join(f"{line}\n" for line in suite_lines.curl(said)))


def memcached(side: Side, report: Path) -> None:
    """Each of its files of tests, and testapp, which is a program: a file passes if its status is 0."""
    files = [("testapp", "./testapp")]
    files += [(path.name, f"perl {path}") for path in sorted((folder() / "t").glob("*.t"))]
    with report.open("w") as out:
        for name, words in files:
            status, said = run(side, folder(), FILE_SECONDS, words, report.with_suffix(".out"))
            out.writelines(f"{line}\n" for line in suite_lines.tap(name, said))
            out.write(f"{'failed' if status else 'passed'} {name}\n")
            out.flush()
