# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench kernel rtt`, `rate`, `bulk` and `w4`: tables and documents."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lab import machine
from lab.console import console, table
from lab.demo.report import LABELS
from lab.vm import Kernel
from lab.vm.bench import loads as loaded
from lab.vm.bench import timing
from lab.vm.bench.report import show_failed
from lab.vm.bench.timing import Times, spread

if TYPE_CHECKING:
    from lab.vm.bench.cli import Wish

# Long messages are compared where TCP, too, sends packet by packet.
_OFFLOADS = {"bulk": "off"}
W4_SECONDS = 45  # some 1,050 messages in the shortest tenth: a P99 needs 1,000


def show(wish: Wish, kernel: Kernel, module: Path | None) -> dict[str, object]:
    """Measure a part, print its tables, give its document."""
    out = console()
    offloads = wish.offloads or _OFFLOADS.get(wish.part, "default")
    here = machine.describe()
    part = timing.groups(wish.part, wish.seconds)
    found, said = timing.measure(
        kernel, module, part, rounds=wish.rounds, seconds=wish.seconds, offloads=offloads
    )
    out.print(f"{here.one_line()}; guest: Linux {kernel.release}, 2 emulated CPUs", markup=False)
    for times in found:
        _print(times)
    out.print(
        f"polling: {timing.POLL_USECS} µs before a thread sleeps, in recvmsg() with Homa, in the "
        "program with TCP: 50 µs of hardware, times ten for the emulation",
        markup=False,
    )
    out.print(f"offloads: {said.offloads}", markup=False)
    show_failed(said.failed)
    return {
        "machine": here.as_json(),
        "offloads": said.offloads,
        "poll_usecs": timing.POLL_USECS,
        "groups": {times.group.key: _json(times) for times in found},
        "failed": said.failed,
    }


def _json(times: Times) -> dict[str, object]:
    plain_tcp, plain_homa = times.group.plain
    labels = {case.key: case.label for case in times.group.cases}
    return {
        "title": times.group.title,
        "cases": {
            key: {"label": labels[key], **(spread([v for v in values if v is not None]) or {})}
            for key, values in times.values.items()
        },
        "ratios": {
            name: value
            for name, value in (
                ("best_to_best_tcp", spread(times.best_ratios(times.tcp()))),
                ("best_to_blocking_tcp", spread(times.best_ratios(times.blocking()))),
                ("plain_to_plain_tcp", spread(times.ratios(plain_homa, [plain_tcp]))),
            )
            if value
        },
        **{
            name: {
                case.key: spread(times.ratios(case.key, rivals))
                for case in times.group.cases
                if case.is_homa and case.key in times.values
            }
            for name, rivals in (
                ("to_best_tcp", times.tcp()),
                ("to_blocking_tcp", times.blocking()),
            )
        },
    }


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _print(times: Times) -> None:
    """A case's value, and its ratios to the best TCP that blocks and to the best of all."""
    rivals = (times.blocking(), times.tcp())
    heads = ("to blocking TCP", "spread", "to best TCP", "spread")
    grid = table(times.group.title, "", "median", "spread", *heads)
    for case in times.group.cases:
        values = [v for v in times.values.get(case.key, []) if v is not None]
        if not values:
            continue
        own = spread(values)
        ratios = [spread(times.ratios(case.key, r)) if case.is_homa else None for r in rivals]
        grid.add_row(
            case.label,
            _number(own["median"]),  # type: ignore[index,arg-type]
            f"{_number(own['min'])}–{_number(own['max'])}",  # type: ignore[index,arg-type]
            *(word for ratio in ratios for word in _ratio_words(ratio)),
        )
    console().print(grid)
    plain = spread(times.ratios(times.group.plain[1], [times.group.plain[0]]))
    best = [spread(times.best_ratios(r)) for r in rivals]
    for what, ratio in (
        ("Homa as it comes to TCP as programs use it (polling to blocking, unpinned)", plain),
        ("the best Homa to the best TCP that blocks", best[0]),
        ("the best Homa to the best TCP", best[1]),
    ):
        if ratio:
            console().print(f"{what}: {' '.join(_ratio_words(ratio))}", markup=False)


def _ratio_words(ratio: dict[str, object] | None) -> tuple[str, str]:
    if not ratio:
        return "", ""
    return f"{ratio['median']:.2f}", f"{ratio['min']:.2f}–{ratio['max']:.2f}"


def show_w4(wish: Wish, kernel: Kernel, module: Path | None) -> dict[str, object]:
    """W4 at 80 %: latency of the shortest tenth and of all, per transport."""
    out = console()
    here = machine.describe()
    plan = loaded.Plan(seconds=W4_SECONDS * wish.seconds)
    loads = loaded.measure(kernel, module, plan, rounds=wish.rounds)
    out.print(
        f"{here.one_line()}; guest: Linux {kernel.release}, one emulated CPU, virtual time",
        markup=False,
    )
    grid = table(
        f"W4 at {plan.load:.0%} on links of {plan.link_bps // 1_000_000} Mbit/s, {plan.hosts} hosts, "
        f"switch buffer {loads.buffer // 1024} KB: medians of {wish.rounds} rounds",
        *("", "short P50 µs", "short P99 µs", "short n", "all P99 µs", "RPCs", "to Homa", "spread"),
    )
    for name, runs in loads.runs.items():
        ratio = spread(loads.ratios(name)) if name != "homa" else None
        grid.add_row(
            LABELS[name],
            _number(statistics.median(run.rows[0].p50_us or 0 for run in runs)),
            _number(statistics.median(run.rows[0].p99_us or 0 for run in runs)),
            f"{statistics.median(run.rows[0].count for run in runs):,.0f}",
            _number(statistics.median(run.overall.p99_us or 0 for run in runs)),
            f"{statistics.median(run.completed for run in runs):,.0f}",
            f"{ratio['median']:.1f}" if ratio else "",
            f"{ratio['min']:.1f}–{ratio['max']:.1f}" if ratio else "",
        )
    out.print(grid)
    show_failed(loads.failed)
    return {
        "machine": here.as_json(),
        "link_bps": plan.link_bps,
        "load": plan.load,
        "buffer": loads.buffer,
        "offloads": "tso off gso off gro off",
        "runs": {name: [asdict(run) for run in runs] for name, runs in loads.runs.items()},
        "short_p99_to_homa": {
            name: found
            for name in loads.runs
            if name != "homa" and (found := spread(loads.ratios(name)))
        },
        "all_p99_of_homa_to": {
            name: found
            for name in loads.runs
            if name != "homa" and (found := spread(loads.ratios_of_all(name)))
        },
        "failed": loads.failed,
    }
