# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench kernel tcp-instructions`: tables and document."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from lab.console import console, table
from lab.vm import Kernel
from lab.vm.bench import tcp_echo
from lab.vm.bench.profile import by_part, functions
from lab.vm.bench.programs_at import Place
from lab.vm.bench.report import show_failed
from lab.vm.bench.tcp_echo import WAYS, Echo, Echoes
from lab.vm.bench.timing import spread

if TYPE_CHECKING:
    from lab.vm.bench.cli import Wish

TEXTS = {
    "kernel": "kernel's TCP",
    "homad": "homad at\nboth ends",
    "server": "homad at\nthe server",
}
_ROLES = {
    "client": "the client",
    "server": "the server",
    "homad-c": "homad at the client",
    "homad-s": "homad at the server",
}
_OTHERS = "other programs, and code that processes share"


def show(wish: Wish, kernel: Kernel, module: Path | None) -> dict[str, object]:
    """Instructions of the whole guest for each request, by way, part and function."""
    del module
    found = tcp_echo.measure(kernel, wish.rounds, wish.seconds)
    out = console()
    grid = table(
        f"instructions for each {tcp_echo.SIZE} B echo, {tcp_echo.CONNECTIONS} connections, all of "
        f"the guest, Linux {kernel.release}",
        *("", *(TEXTS[way] for way in WAYS)),
    )
    for text, per_way in _lines(found).items():
        grid.add_row(escape(text), *(per_way[way] for way in WAYS))
    out.print(grid)
    for way in WAYS:
        _show_functions(way, found.of(way)[-1], found, wish.top)
    idle = sum(one.section.halts for one in found.found)
    out.print(
        f"\nMedians of {wish.rounds} rounds with their spread; parts and functions are of the last. "
        + (
            f"The guest had nothing to do {idle} times while it was counted."
            if idle
            else "The guest had something to do all the time while it was counted."
        ),
        markup=False,
    )
    show_failed(found.failed)
    return {
        "connections": tcp_echo.CONNECTIONS,
        "size": tcp_echo.SIZE,
        "window_s": tcp_echo.WINDOW_S * wish.seconds,
        "ratios": {way: spread(found.ratios(way)) for way in WAYS if way != "kernel"},
        "ways": {way: _way_json(found.of(way), found) for way in WAYS},
        "failed": found.failed,
    }


def _each(rounds: list[Echo]) -> dict[str, list[float]]:
    """All, the kernel's and programs' instructions for each request, round by round."""
    return {
        "all": [one.each for one in rounds],
        "kernel": [one.section.kernel / one.requests for one in rounds],
        "programs": [one.section.user / one.requests for one in rounds],
    }


def parts(one: Echo, found: Echoes) -> dict[str, float]:
    """Instructions for each request: the kernel's by part, programs' by process and file."""
    sums: dict[str, float] = defaultdict(float)
    for place, instructions in found.programs.by_place(one.section.programs, one.mappings).items():
        sums[_where(place)] += instructions / one.requests
    kernel = by_part(functions(one.section, found.symbols))
    return {**{f"kernel: {part}": n for part, n in kernel.items()}, **sums}


def _where(place: Place) -> str:
    """A process and a file, for people."""
    role = _ROLES.get(place.role)
    if not role:
        return _OTHERS
    return role if role.startswith(place.file) else f"{role}: {place.file}"


def _lines(found: Echoes) -> dict[str, dict[str, str]]:
    """The table's lines: the text, and what stands there for each way."""
    each = {way: _each(found.of(way)) for way in WAYS}
    ratios = {way: found.ratios(way) for way in WAYS}
    by_way = {way: parts(found.of(way)[-1], found) for way in WAYS}
    lines = {
        "all": {way: f"{statistics.median(each[way]['all']):,.0f}" for way in WAYS},
        "to the kernel's TCP": {way: f"{statistics.median(ratios[way]):.3f}" for way in WAYS},
        "spread of that": {way: f"{min(ratios[way]):.3f}–{max(ratios[way]):.3f}" for way in WAYS},
        "kernel": {way: f"{statistics.median(each[way]['kernel']):,.0f}" for way in WAYS},
        "programs": {way: f"{statistics.median(each[way]['programs']):,.0f}" for way in WAYS},
    }
    most = {
        name: max(other.get(name, 0) for other in by_way.values())
        for sums in by_way.values()
        for name in sums
    }
    for name in sorted(most, key=lambda name: (not name.startswith("kernel: "), -most[name])):
        if most[name] < 0.5:
            continue
        lines[name] = {
            way: f"{sums[name]:,.0f}" if sums.get(name, 0) >= 0.5 else ""
            for way, sums in by_way.items()
        }
    return lines


def top_functions(one: Echo, found: Echoes) -> list[tuple[float, str, str]]:
    """(instructions for each request, function, where it is), most first."""
    rows = [
        (row.instructions, row.function.name, f"kernel: {row.part}")
        for row in functions(one.section, found.symbols)
    ]
    places = found.programs.by_place(one.section.programs, one.mappings)
    rows += [(n / one.requests, place.function, _where(place)) for place, n in places.items()]
    return sorted(rows, reverse=True)


def _show_functions(way: str, one: Echo, found: Echoes, top: int) -> None:
    # Plain lines: they are for editors and for grep, wider than a terminal.
    title = TEXTS[way].replace("\n", " ")
    print(f"\n{title}: the {top} functions with most instructions for each request")
    for instructions, name, where in top_functions(one, found)[:top]:
        print(f"{instructions:8.0f}  {name:40} {where}")


def _way_json(rounds: list[Echo], found: Echoes) -> dict[str, object]:
    last = rounds[-1]
    return {
        **{name: spread(values) for name, values in _each(rounds).items()},
        "requests": [one.requests for one in rounds],
        "halts": [one.section.halts for one in rounds],
        "parts": {name: round(n, 1) for name, n in parts(last, found).items()},
        "functions": [
            {"instructions": round(n, 1), "function": name, "where": where}
            for n, name, where in top_functions(last, found)
            if n >= 1
        ],
    }
