# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The demo's tables: one per buffer size, a row per tenth of the messages."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from lab.demo import report
from lab.console import table
from lab.demo.report import HOMA, LABELS, Report, SizeRow
from lab.units import format_bytes, format_rate, format_ratio, format_us

ENOUGH = 1000  # fewest samples of a percentile that may be quoted


def size_range(row: SizeRow) -> str:
    """Sizes of one row, as "53 – 315"."""
    low, high = format_bytes(row.size_low), format_bytes(row.size_high)
    return low if low == high else f"{low} – {high}"


def _slowdown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}"


def _ratio(value: float | None) -> Text:
    style = "" if value is None else "green" if value >= 1 else "red"
    return Text(format_ratio(value), style=style)


def decile_table(result: Report, buffer: int) -> Table:
    """Median, P99 and P99 slowdown of each transport, and TCP's P99 over Homa's."""
    transports = [t for t in result.transports() if result.run(t, buffer)]
    others = [t for t in transports if t != HOMA and HOMA in transports]
    columns = ["message\nbytes"]
    for name in transports:
        columns += [f"{LABELS.get(name, name)}\nP50", "\nP99", "slow-\ndown"]
    columns += [f"{LABELS.get(name, name).removeprefix('TCP ')}\n/Homa" for name in others]
    title = (
        f"switch buffer {buffer // 1024} KB per port"
        if result.network.get("buffers")
        else "loopback, no switch"
    )
    if buffer != result.buffers()[0]:
        title += f" ({buffer / result.buffers()[0]:.0f} times as much)"
    grid = table(title, *columns, tight=True)
    runs = [result.run(t, buffer) for t in transports]
    ratios = [result.ratios(t, buffer) for t in others]
    rows = len(runs[0].rows) if runs and runs[0] else 0
    for index in range(rows):
        cells: list[str | Text] = [size_range(runs[0].rows[index])]  # type: ignore[union-attr]
        for run in runs:
            cells += _cells(run.rows[index])  # type: ignore[union-attr]
        grid.add_row(*cells, *(_ratio(r[index]) for r in ratios), end_section=index == rows - 1)
    cells = ["all sizes"]
    for run in runs:
        cells += _cells(run.overall)  # type: ignore[union-attr]
    homa = result.run(HOMA, buffer)
    for name in others:
        other = result.run(name, buffer)
        cells.append(_ratio(report.ratio(other.overall.p99_us, homa.overall.p99_us)))  # type: ignore[union-attr]
    grid.add_row(*cells)
    return grid


def _cells(row: SizeRow) -> list[str | Text]:
    return [format_us(row.p50_us), format_us(row.p99_us), _slowdown(row.slowdown_p99)]


def sample_note(result: Report) -> str:
    """How many messages a P99 of a tenth rests on, and how to get more; "" without results."""
    counts = [row.count for run in result.runs for row in run.rows]
    if not counts:
        return ""
    text = f"Each tenth holds {min(counts):,} messages or more"
    if min(counts) >= ENOUGH:
        return text + "."
    return (
        f"{text}, so its P99 rests on the {max(1, round(min(counts) / 100))} slowest and is an "
        f"indication; figures to quote need {ENOUGH:,}: more --seconds."
    )


def run_table(result: Report) -> Table:
    """What was carried, dropped and spent in every run."""
    grid = table(
        "what each run carried",
        "transport",
        "buffer\nKB",
        "\ngoodput",
        "load\noffered",
        "load\ncarried",
        "messages\ncompleted",
        "\nfailed",
        "switch\ndrops",
        "peak\nqueue KB",
        "CPU per\nmessage",
        tight=True,
    )
    for run in result.runs:
        cpu = run.cpu_s * 1e6 / run.completed if run.completed else None
        grid.add_row(
            LABELS.get(run.transport, run.transport),
            f"{run.buffer // 1024}",
            format_rate(run.goodput_bps),
            f"{run.offered_load:.0%}",
            f"{run.wire_load:.0%}",
            f"{run.completed:,}",
            f"{run.failed:,}",
            f"{run.drops:,}",
            "–" if run.peak_backlog is None else f"{run.peak_backlog / 1024:.0f}",
            format_us(cpu),
        )
    return grid
