# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Instructions per source line of homa.ko, from the debugging information in the module.

Code that was inlined counts for the line it stands in, and is shown with the function that it
was inlined into: that is where one must look to make it less.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

from lab.vm import VmError
from lab.vm.bench.profile import Section
from lab.vm.bench.symbols import Symbols


def by_line(section: Section, symbols: Symbols, module: Path) -> list[tuple[float, str, str]]:
    """(instructions per RPC, function of the symbol table, FILE:LINE), most first."""
    offsets = _offsets(module)
    wanted: dict[int, tuple[float, str]] = {}
    for address, length, runs in section.blocks:
        function = symbols.find(address)
        if function.module != "homa" or function.name not in offsets:
            continue
        place = offsets[function.name] + address - function.address
        each, name = wanted.get(place, (0.0, function.name))
        wanted[place] = (each + length * runs / section.rpcs, name)
    sums: dict[tuple[str, str], float] = defaultdict(float)
    places = sorted(wanted)
    for place, where in zip(places, _lines(module, places), strict=True):
        instructions, name = wanted[place]
        sums[name, where] += instructions
    return sorted(((n, *key) for key, n in sums.items()), reverse=True)


def _offsets(module: Path) -> dict[str, int]:
    """Where functions are in the module's code; names that stand there twice are left out."""
    done = subprocess.run(
        ["nm", "--defined-only", str(module)], capture_output=True, text=True, check=False
    )
    found: dict[str, int] = {}
    twice = set()
    for line in done.stdout.splitlines():
        match = re.fullmatch(r"([0-9a-f]+) [tT] (\S+)", line)
        if match:
            twice |= {match[2]} & set(found)
            found[match[2]] = int(match[1], 16)
    return {name: place for name, place in found.items() if name not in twice}


def _lines(module: Path, places: list[int]) -> list[str]:
    """FILE:LINE of each place in the section .text."""
    done = subprocess.run(
        ["addr2line", "-j", ".text", "-e", str(module)],
        input="".join(f"{place:x}\n" for place in places),
        capture_output=True,
        text=True,
        check=False,
    )
    rows = done.stdout.splitlines()
    if done.returncode or len(rows) != len(places):
        raise VmError(f"addr2line cannot read {module}: {done.stderr.strip()[:200]}")
    return ["/".join(row.split(" ")[0].split("/")[-1:]) for row in rows]
