# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where the kernel instructions of an RPC go: functions, parts and who calls whom.

The counts are of insn_count.c: blocks of code with how often they ran, and calls between
blocks. A function's share is that of its blocks without what it calls; it was called as often
as its first block ran.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lab.vm.bench.parts import part_of
from lab.vm.bench.symbols import Function, Symbols


@dataclass
class Section:
    """What the plugin wrote for one measured part: instructions, and blocks of code with their length and
    executions, of the kernel and of programs. `halts`: how often the guest had nothing to do."""

    rpcs: int = 1
    kernel: int = 0
    user: int = 0
    blocks: list[tuple[int, int, int]] = field(default_factory=list)
    calls: list[tuple[int, int, int]] = field(default_factory=list)
    programs: list[tuple[int, int, int]] = field(default_factory=list)
    halts: int = 0


def sections(lines: Iterable[str]) -> Iterator[Section]:
    """The measured parts in a plugin's file, in their order."""
    section = Section()
    for line in lines:
        kind, *words = line.split()
        if kind == "block":
            section.blocks.append((int(words[0], 16), int(words[1]), int(words[2])))
        elif kind == "call":
            section.calls.append((int(words[0], 16), int(words[1], 16), int(words[2])))
        elif kind == "user":
            section.programs.append((int(words[0], 16), int(words[1]), int(words[2])))
        elif kind == "halt":
            section.halts = int(words[0])
        elif kind == "count":
            section.kernel, section.user = int(words[0]), int(words[1])
            yield section
            section = Section()


@dataclass
class Row:
    """A function, per RPC: instructions of its own, calls, and callers with their calls."""

    function: Function
    instructions: float = 0.0
    calls: float = 0.0
    callers: Counter[str] = field(default_factory=Counter)

    @property
    def part(self) -> str:
        """What it is part of."""
        return part_of(self.function)

    def as_json(self) -> dict[str, object]:
        """For a result file."""
        return {
            "function": self.function.name,
            "module": self.function.module,
            "part": self.part,
            "instructions": round(self.instructions, 3),
            "calls": round(self.calls, 4),
            "callers": {name: round(n, 4) for name, n in self.callers.most_common(8)},
        }


def functions(section: Section, symbols: Symbols) -> list[Row]:
    """All functions that ran, most instructions first."""
    rows: dict[Function, Row] = {}
    for address, length, runs in section.blocks:
        function = symbols.find(address)
        row = rows.setdefault(function, Row(function))
        row.instructions += length * runs / section.rpcs
        if address == function.address:
            row.calls += runs / section.rpcs
    for origin, target, times in section.calls:
        function = symbols.find(target)
        if target == function.address and function in rows:
            rows[function].callers[symbols.find(origin).name] += times / section.rpcs  # type: ignore[assignment]
    return sorted(rows.values(), key=lambda row: -row.instructions)


def by_part(rows: list[Row]) -> dict[str, float]:
    """Sums by part, largest first."""
    sums: dict[str, float] = defaultdict(float)
    for row in rows:
        sums[row.part] += row.instructions
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def own(rows: list[Row]) -> float:
    """What homa.ko's own functions ran, the engine's among them, without what they call."""
    return sum(row.instructions for row in rows if row.function.module == "homa")


def function_words(row: Row) -> str:
    """Its name, and its module if it is not homa.ko."""
    module = row.function.module
    return f"{row.function.name} [{module}]" if module and module != "homa" else row.function.name


def caller_words(row: Row, most: int = 3) -> str:
    """The callers that matter, each with its calls per RPC."""
    shown = [(n, c) for n, c in row.callers.most_common(most) if c >= 0.05]
    return ", ".join(f"{re.sub(r'[.](isra|constprop|part).*', '', n)} {c:.1f}" for n, c in shown)
