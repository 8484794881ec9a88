# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the demo says before and after it measures."""

from __future__ import annotations

from pathlib import Path

from lab.console import console
from lab.machine import Machine
from lab.demo.plot import draw
from lab.demo.report import EXPLAINED, LABELS, Report
from lab.demo.settings import BUFFER_FACTORS, Settings
from lab.net.switch import Switch, nominal_rtt
from lab.demo.tables import decile_table, run_table, sample_note
from lab.units import format_rate, format_us


def headline(settings: Settings) -> dict[str, str]:
    """Title and subtitle of the figure."""
    workload = (
        settings.workload.upper() if len(settings.workload) == 2 else Path(settings.workload).name
    )
    return {
        "title": f"RPC slowdown under load: {workload} at {settings.load:.0%}".replace("%", " %"),
        "subtitle": f"{settings.hosts} hosts, all client and server, "
        f"{format_rate(settings.link_bps)} links, one switch with 8 strict priorities, "
        "same arrivals for all",
    }


def announce(settings: Settings, switch: Switch, here: Machine) -> None:
    """Say what will be measured."""
    out = console()
    if here.warning():
        out.print(here.warning(), markup=False)
    out.print(
        f"{settings.hosts} hosts, all client and server, "
        f"{format_rate(settings.link_bps)} links, workload "
        f"{settings.workload} at {settings.load:.0%} load, seed {settings.seed}.",
        markup=False,
    )
    if not switch.ports:
        out.print(
            "No switch and no shaped links here: this shows the programs, not the network.",
            markup=False,
        )
        return
    bdp = settings.link_bps / 8 * nominal_rtt(settings.link_bps)
    sharing = (
        "shared by its 8 classes"
        if switch.shared
        else "for each of its 8 classes (BPF cannot be loaded)"
    )
    out.print(
        f"Switch buffer per port: {switch.buffer // 1024} KB {sharing}: "
        f"{switch.buffer / bdp:.0f} bandwidth-delay products of {bdp / 1024:.1f} KB\n"
        f"(round trip {format_us(nominal_rtt(settings.link_bps) * 1e6)}); "
        f"then {BUFFER_FACTORS[1]} times as much.",
        markup=False,
    )


def show(report: Report, plot: Path) -> None:
    """Tables, what they mean, and the figure."""
    out = console()
    for buffer in report.buffers():
        out.print()
        out.print(decile_table(report, buffer))
    out.print(run_table(report))
    for name in report.transports():
        via = next((run.via for run in report.runs if run.transport == name and run.via), "")
        what = EXPLAINED.get(f"{name}-{via}") or EXPLAINED[name] + (f" ({via})" if via else "")
        out.print(f"{LABELS[name]}: {what}.", markup=False)
    out.print(
        "Slowdown: time over the best unloaded median of any transport for that size. "
        "Ratios: P99 of TCP over P99 of Homa.",
        markup=False,
    )
    if note := sample_note(report):
        out.print(note, markup=False)
    for run in report.runs:
        for note in run.notes:
            out.print(f"{LABELS[run.transport]}, {run.buffer // 1024} KB: {note}.", markup=False)
    draw(report, plot)
    out.print(f"Figure: {plot}", markup=False)
