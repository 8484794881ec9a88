# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench kernel icount` and `profile`: tables and documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab.console import console, table
from lab.errors import LabError, UsageError
from lab.vm import Kernel
from lab.vm.bench import counting, glue
from lab.vm.bench.counting import Count
from lab.vm.bench.lines import by_line
from lab.vm.bench.profile import Row, by_part, caller_words, function_words, functions, own
from lab.vm.bench.report import show_failed

if TYPE_CHECKING:
    from lab.vm.bench.cli import Wish

RIVALS = {
    **{
        f"{what}_{way}_{n}": f"tcp_{n}"
        for what in ("homa", "exchange")
        for way in ("block", "poll")
        for n in (1, 16)
    },
    "homa_500k": "tcp_500k",
    "homa_500k_block": "tcp_500k",
    "homa_500k_echo": "tcp_500k_echo",
    "udp_1": "tcp_1",
    **{f"tcp_{n}_with_module": f"tcp_{n}" for n in (1, 16, "500k", "500k_echo")},
}


def icount(wish: Wish, kernel: Kernel, module: Path | None) -> dict[str, object]:
    """Instructions per RPC of every case, and Homa's ratios to TCP."""
    out = console()
    offloads = wish.offloads or "default"
    found = counting.measure(
        kernel, module, cases=counting.CASES + counting.LARGE, offloads=offloads
    )
    grid = table(
        f"kernel instructions per RPC, Linux {kernel.release}, 100 B (500 KB: per message)",
        *("", "kernel", "user", "to TCP"),
    )
    for key, count in found.counts.items():
        ratio = found.ratio(key, RIVALS.get(key, ""))
        label = count.case.label + (", homa.ko loaded" if key.endswith("_with_module") else "")
        grid.add_row(
            label,
            f"{count.kernel:,.1f}",
            f"{count.user:,.0f}",
            f"{ratio:.3f}" if ratio else "",
        )
    out.print(grid)
    out.print(f"offloads: {found.offloads}", markup=False)
    size = glue.describe(module) if module else None
    if size:
        text = size["text_bytes"]
        out.print(
            f"glue beside the engine: {size['glue_lines']:,} lines of code (engine "
            f"{size['engine_lines']:,})"
            + (f", {text['glue']:,} bytes (engine {text['engine']:,})" if text else ""),  # type: ignore[index]
            markup=False,
        )
    show_failed(found.failed)
    return {
        "offloads": found.offloads,
        "cases": {key: _case_json(count) for key, count in found.counts.items()},
        "ratios": {
            f"{key}_to_tcp": ratio
            for key, rival in RIVALS.items()
            if (ratio := found.ratio(key, rival)) is not None
        },
        "glue": size,
        "failed": found.failed,
    }


def _case_json(count: Count) -> dict[str, object]:
    return {"label": count.case.label, "kernel": count.kernel, "user": count.user}


def _cases_wanted(wish: Wish, module: Path | None) -> list[str]:
    known = [case.key for case in counting.CASES + counting.LARGE]
    wanted = [x for x in wish.cases.split(",") if x]
    for key in wanted:
        if key not in known:
            raise UsageError(f"--cases {key}: known are {', '.join(known)}")
    return wanted or (["tcp_1", "homa_block_1"] if module else ["tcp_1"])


def profile(wish: Wish, kernel: Kernel, module: Path | None) -> dict[str, object]:
    """In which functions the instructions are."""
    out = console()
    wanted = _cases_wanted(wish, module)
    cases = tuple(c for c in counting.CASES + counting.LARGE if c.key in wanted)
    offloads = wish.offloads or "default"
    found = counting.measure(kernel, module, cases=cases, offloads=offloads, profile=True)
    assert found.symbols is not None
    show_failed(found.failed)
    shown = {key: count for key, count in found.counts.items() if key in wanted}
    if not shown:
        raise LabError("none of the cases ended; the reasons are above")
    rows = {key: functions(count.section, found.symbols) for key, count in shown.items()}
    out.print(_parts_table(shown, rows))
    for key, count in shown.items():
        _show_functions(count, rows[key], wish.top)
        if module and count.case.is_homa:
            _show_lines(by_line(count.section, found.symbols, module)[: wish.top])
    return {
        "offloads": found.offloads,
        "cases": {
            key: {
                **_case_json(count),
                "parts": by_part(rows[key]),
                "functions": [row.as_json() for row in rows[key]],
            }
            for key, count in shown.items()
        },
        "failed": found.failed,
    }


def _parts_table(shown: dict[str, Count], rows: dict[str, list[Row]]) -> object:
    sums = {key: by_part(rows[key]) for key in shown}
    grid = table("kernel instructions per RPC by part", "", *shown)
    parts = sorted(
        {p for s in sums.values() for p in s},
        key=lambda p: -max(s.get(p, 0) for s in sums.values()),
    )
    for part in parts:
        grid.add_row(part, *(f"{s.get(part, 0):,.0f}" for s in sums.values()))
    grid.add_row("all", *(f"{count.kernel:,.0f}" for count in shown.values()))
    return grid


def _show_lines(rows: list[tuple[float, str, str]]) -> None:
    print("\nblocks of homa.ko by the source line they begin in")
    for instructions, function, where in rows:
        print(f"{instructions:8.0f}  {where:32} {function}")


def _show_functions(count: Count, rows: list[Row], top: int) -> None:
    # Plain lines: they are for editors and for grep, wider than a terminal.
    print(f"\n{count.case.label}: the {top} functions with most instructions")
    print(f"{'insns':>8} {'calls':>7}  {'function':40} {'part':24} callers (calls per RPC)")
    for row in rows[:top]:
        print(
            f"{row.instructions:8.0f} {row.calls:7.2f}  {function_words(row):40} {row.part:24} "
            f"{caller_words(row)}"
        )
    ours = [row for row in rows if row.part == "homa.ko"]
    if ours:
        print(f"\nhoma.ko's own functions: {own(rows):,.0f} of {count.kernel:,.0f}")
        for row in ours[: max(top, 40)]:
            print(
                f"{row.instructions:8.0f} {row.calls:7.2f}  {row.function.name:40} {'':24} "
                f"{caller_words(row)}"
            )
