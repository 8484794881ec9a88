# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which program, and which of its functions, an address in a guest's processes is in.

A guest's kernel draws other addresses for each process, so an address that was executed tells the
process, by what /proc/PID/maps had said of each. The emulator translates a page once, and knows its
code by the address that it had in the process that ran it first: so a process is told from others
only by files that no other one has run.
"""

from __future__ import annotations

import bisect
import struct
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_EXECUTABLE = 1  # a flag of a segment
_LOADED = 1  # a kind of segment
_HEADER = struct.Struct("<IIQQQQQQ")  # of a segment, in an ELF file of 64 bits


@dataclass(frozen=True)
class Mapping:
    """Code in a process's memory; `role` is what the process is for, `path` the guest's file."""

    role: str
    start: int
    end: int
    offset: int
    path: str

    @classmethod
    def parse(cls, line: str) -> Mapping:
        """From "ROLE START-END OFFSET PATH"."""
        role, span, offset, *path = line.split()
        start, end = (int(word, 16) for word in span.split("-"))
        return cls(role, start, end, int(offset, 16), path[0] if path else "?")


@dataclass(frozen=True)
class Place:
    """Where instructions were executed: the process, the file's name, the function."""

    role: str
    file: str
    function: str


class Programs:
    """Functions of programs; `places` says where the files of the guest are here, by their names."""

    def __init__(self, places: dict[str, Path]) -> None:
        self._places = places
        self._names: dict[str, tuple[list[int], list[str]]] = {}

    def by_place(
        self, blocks: Sequence[tuple[int, int, int]], mappings: Sequence[Mapping]
    ) -> dict[Place, int]:
        """Instructions by where they were executed; blocks are (address, length, executions)."""
        ordered = sorted(mappings, key=lambda one: one.start)
        starts = [one.start for one in ordered]
        sums: dict[Place, int] = defaultdict(int)
        for address, length, runs in blocks:
            at = bisect.bisect_right(starts, address) - 1
            found = ordered[at] if at >= 0 and address < ordered[at].end else None
            sums[self._place(address, found)] += length * runs
        return dict(sums)

    def _place(self, address: int, mapping: Mapping | None) -> Place:
        if mapping is None:
            return Place("others", "?", "?")
        file = Path(mapping.path).name
        addresses, names = self._functions(file)
        at = bisect.bisect_right(addresses, address - mapping.start + mapping.offset) - 1
        return Place(mapping.role, file, names[at] if at >= 0 else "?")

    def _functions(self, file: str) -> tuple[list[int], list[str]]:
        """Places of functions in a file, and their names; none for one that nobody named."""
        if file not in self._names:
            here = self._places.get(file)
            self._names[file] = functions(here) if here else ([], [])
        return self._names[file]


def functions(path: Path) -> tuple[list[int], list[str]]:
    """Where each function begins in an ELF file, in order, and what it is called."""
    shift = _shift(path.read_bytes())
    found: dict[int, str] = {}
    for more in (["-D"], []):
        done = subprocess.run(
            ["nm", "--defined-only", *more, str(path)], capture_output=True, text=True, check=False
        )
        for line in done.stdout.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tTwWi":
                found[int(words[0], 16) - shift] = words[2].split("@")[0]
    places = sorted(found)
    return places, [found[place] for place in places]


def _shift(content: bytes) -> int:
    """What an address of code in an ELF file has more than its place in the file."""
    start, size, number = struct.unpack_from("<Q14xHH", content, 32)
    for n in range(number):
        kind, flags, offset, address, *_ = _HEADER.unpack_from(content, start + n * size)
        if kind == _LOADED and flags & _EXECUTABLE:
            return address - offset
    return 0
