# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench kernel streams`: its table and document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab import machine
from lab.console import console, table
from lab.errors import UsageError
from lab.vm import Kernel
from lab.vm.bench import streams
from lab.vm.bench.loads import Plan
from lab.vm.bench.report import show_failed

if TYPE_CHECKING:
    from lab.vm.bench.cli import Wish

SECONDS = 3
_VALUES = ("count", "p50_us", "p99_us")


def show(wish: Wish, kernel: Kernel, module: Path | None) -> dict[str, object]:
    """Rates alone and P99 beside W4 of each server over TCP and over Homa."""
    if module is None:
        raise UsageError("streams: needs the module")
    out = console()
    here = machine.describe()
    plan = Plan(seconds=max(1, round(SECONDS * wish.seconds)))
    done = streams.measure(kernel, module, plan, rounds=wish.rounds)
    out.print(f"{here.one_line()}; guest: Linux {kernel.release}, one emulated CPU", markup=False)
    grid = table(
        f"answers of 100 B: alone on {streams.MANY} connections; on one beside W4 at "
        f"{plan.load:.0%} of {plan.link_bps // 1_000_000} Mbit/s, {plan.hosts} hosts, for "
        f"{plan.seconds:.0f} s of virtual time; medians of {wish.rounds} rounds",
        *("", "over", "answers/s alone", "beside: P50 µs", "P99 µs", "answers"),
    )
    for server in streams.SERVERS:
        for transport in streams.TRANSPORTS:
            values = [done.median(server.name, transport, "alone", "count")]
            for value in ("p50_us", "p99_us", "count"):
                values.append(done.median(server.name, transport, "beside", value))
            words = ["" if value is None else f"{value:,.0f}" for value in values]
            grid.add_row(server.name, transport, *words)
    out.print(grid)
    show_failed(done.failed)
    return {
        "machine": here.as_json(),
        "link_bps": plan.link_bps,
        "load": plan.load,
        "seconds": plan.seconds,
        "results": [
            {
                "server": server,
                "transport": transport,
                "how": how,
                **{value: done.median(server, transport, how, value) for value in _VALUES},
                "rounds": rounds,
            }
            for (server, transport, how), rounds in done.found.items()
        ],
        "failed": done.failed,
    }
