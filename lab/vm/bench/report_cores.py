# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench kernel cores`: tables and a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from lab.console import console, table
from lab.errors import LabError, UsageError
from lab.vm import Kernel
from lab.vm.bench import cores
from lab.vm.bench.cores import Cores

if TYPE_CHECKING:
    from lab.vm.bench.cli import Wish


def cpus_of(words: str) -> tuple[int, ...]:
    """The numbers of CPUs in a list with commas; UsageError."""
    try:
        found = tuple(int(word) for word in words.split(","))
    except ValueError:
        found = ()
    if not found or not all(1 <= cpus <= cores.MOST_CPUS for cpus in found):
        raise UsageError(f"--cpus {words}: numbers from 1 to {cores.MOST_CPUS}, as in 1,2,4,8")
    return found


def show(wish: Wish, kernel: Kernel, module: Path | None) -> dict[str, object]:
    """Locks and cache lines per RPC, for each number of CPUs."""
    if module is None:
        raise LabError("cores: needs the module")
    found = [
        cores.measure(kernel, module, cpus, count=wish.count or cores.COUNT)
        for cpus in (cpus_of(wish.cpus) if wish.cpus else cores.CPUS)
    ]
    out = console()
    out.print(_summary(found, kernel))
    out.print(_sites(found, wish.top))
    out.print(_pairs(found, wish.top))
    out.print(_lines(found[-1], wish.top))
    return {
        "outstanding": cores.OUTSTANDING,
        "cpus": {str(one.cpus): one.as_json(max(wish.top, 40)) for one in found},
    }


def _summary(found: list[Cores], kernel: Kernel) -> object:
    grid = table(
        f"per RPC of 100 B, blocking, Linux {kernel.release}",
        *("CPUs", *(str(one.cpus) for one in found)),
    )
    rows = (
        ("kernel instructions", [f"{one.kernel:,.0f}" for one in found]),
        ("of the CPU with least", [f"{min(one.by_cpu):,.0f}" for one in found]),
        ("of the CPU with most", [f"{max(one.by_cpu):,.0f}" for one in found]),
        ("of homa.ko's functions", [f"{one.own:,.0f}" for one in found]),
        ("locks taken", [f"{sum(one.taken.values()):.1f}" for one in found]),
        ("contended", [f"{sum(one.contended.values()):.2f}" for one in found]),
        ("contended of taken", [f"{one.contended_share:.2%}" for one in found]),
        ("transfers of lines", [f"{one.transfers:.1f}" for one in found]),
        ("to homa.ko", [f"{one.to_own:.1f}" for one in found]),
        ("to a CPU that wrote", [f"{one.writes:.1f}" for one in found]),
        ("timer interrupts", [f"{one.ticks:.2f}" for one in found]),
    )
    for name, figures in rows:
        grid.add_row(name, *figures)
    return grid


def _sites(found: list[Cores], top: int) -> object:
    grid = table(
        "locks per RPC by who takes them: taken, contended",
        *("", *(str(one.cpus) for one in found)),
    )
    last = found[-1].sites
    for name in sorted(last, key=lambda name: (-last[name][1], -last[name][0]))[:top]:
        figures = [one.sites.get(name, (0.0, 0.0)) for one in found]
        grid.add_row(escape(name), *(f"{taken:.2f}  {waited:.3f}" for taken, waited in figures))
    return grid


def _pairs(found: list[Cores], top: int) -> object:
    grid = table(
        "transfers per RPC by who wrote the line and who then used it on another CPU",
        *("wrote", "used", *(str(one.cpus) for one in found)),
    )
    for (writer, user), _ in found[-1].pairs.most_common(top):
        grid.add_row(
            escape(writer), escape(user), *(f"{one.pairs[writer, user]:.2f}" for one in found)
        )
    return grid


def _lines(one: Cores, top: int) -> object:
    grid = table(
        f"the lines that were transferred most, {one.cpus} CPUs ({one.shared:,} lines in all)",
        *("line", "per RPC", "CPUs", "wrote last", "used last"),
    )
    for name, times, cpus, writer, user in one.lines[:top]:
        grid.add_row(*map(escape, (name, f"{times:.2f}", str(cpus), writer, user)))
    return grid
