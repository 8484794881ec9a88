# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which test files of a stage run together, and which begin first.

A stage of pytest has lanes, each of which runs parts of the stage one after the other. What takes
long begins first, and parts take about the same time, so that no lane is alone at the end:
tests/slow.toml says what takes long. It need not be right, a wrong number only costs time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Of a file that the table does not name, in s.
USUAL = 8.0
# Under this name the environment of pytest has the share of each file's tests that it runs.
SHARE = "HOMA_TEST_SHARE"
PLUGIN = "lab.test.share"


@dataclass
class Part:
    """`files` that one run of pytest has, and how long that takes, in s. `share`: "1/3" if it is
    the second third of the tests of its one file, "" if it has all tests. `may_be_empty`: it need
    not have a test that is wanted, as others of the stage may."""

    files: list[Path] = field(default_factory=list)
    seconds: float = 0.0
    share: str = ""
    may_be_empty: bool = True

    @property
    def options(self) -> list[str]:
        """What pytest takes beside the files."""
        return ["-p", PLUGIN] if self.share else []

    @property
    def env(self) -> dict[str, str]:
        return {SHARE: self.share} if self.share else {}


def table(root: Path) -> dict[str, dict[str, Sequence[float]]]:
    """tests/slow.toml: by stage and file, seconds and the number of shares that are run apart."""
    path = root / "tests/slow.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {}


def divide(files: Sequence[Path], slow: Mapping[str, Sequence[float]], number: int) -> list[Part]:
    """All of `files` in about `number` parts, none of them empty, the longest first; a file whose
    tests are run in shares has a part for each."""
    parts, whole = [], []
    for file in files:
        seconds, shares = slow.get(file.stem, (USUAL, 1))
        if shares > 1:
            parts += [
                Part([file], seconds / shares, f"{i}/{int(shares)}") for i in range(int(shares))
            ]
        else:
            whole.append((seconds, file))
    together = [Part() for _ in range(max(0, min(number - len(parts), len(whole))))]
    if whole and not together:
        together = [Part()]
    # The longest that is left goes to the part that is shortest so far.
    for seconds, file in sorted(whole, key=lambda one: (-one[0], one[1])):
        shortest = min(together, key=lambda part: part.seconds)
        shortest.files.append(file)
        shortest.seconds += seconds
    return longest_first([*parts, *together])


def longest_first(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: -part.seconds)
