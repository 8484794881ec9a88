# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Measures cells: a network of namespaces for the run, which is removed also if it is killed.

All cells of a workload have links of one rate: only so can the throughput of streams beside RPCs
be compared with that of streams alone. The same arrivals come in each cell of one RPC load.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from lab.bench import results
from lab.cluster import lateness, nodes, simulated
from lab.cluster import run as cluster
from lab.cluster.busy import Watch
from lab.cluster.stored_runs import Kept
from lab.cluster.setup import DRAIN_S, LIMIT_S, Setup, warmup_s
from lab.coexist import grid, measured, shares, streams
from lab.coexist.grid import Cell
from lab.coexist.measured import Measured
from lab.console import Steps
from lab.net.hosts import Lab
from lab.net.runner import Job, measure_until_still, run_jobs
from lab.net.switch import LEVELS, Switch, Traits

IDLE_S = 8.0  # about, to measure the software's delay
START_S, START_PROGRAM_S = 0.7, 0.06  # from starting the programs to the first arrival
ALONE_S = 10.0  # window of streams without RPCs
# Sizes, bytes, whose times alone on wires are simulated; slowdowns between them are on a line.
SIZES = (64, 1000, 2900, 5800, 20_000, 60_000, 200_000, 1_000_000)


def measure(
    setup: Setup, cells: list[Cell], kept: Kept, tell: Callable[[Measured], None]
) -> list[Measured]:
    """All cells, each told as soon as it is there; those that are kept are not measured."""
    found: list[Measured] = []
    with (
        Steps(_seconds(setup, cells)) as steps,
        Lab() as lab,
        tempfile.TemporaryDirectory() as folder,
    ):
        switch: Switch | None = None
        for workload in dict.fromkeys(cell.workload for cell in cells):
            some = [cell for cell in cells if cell.workload == workload]
            rate, dilation = grid.rate(some, setup)
            if switch is None:
                switch = nodes.switched(lab, steps, setup, setup.hosts, rate)
            switch.rate_bps = rate
            with steps(f"{workload.upper()}: times alone on wires, simulated", 3.0):
                wires = _denominators(setup, rate, Path(folder))
            for one in _workload(setup, switch, some, dilation, wires, kept, steps):
                tell(one)
                found.append(one)
    return found


def window_s(setup: Setup, cell: Cell, rate: int) -> float:
    """Seconds that a cell is measured."""
    return setup.window_s(cell.point, rate) if cell.rpc else min(ALONE_S, setup.longest_s)


def _seconds(setup: Setup, cells: list[Cell]) -> float:
    total = setup.hosts * nodes.HOST_S
    for cell in cells:
        rate, _ = grid.rate([one for one in cells if one.workload == cell.workload], setup)
        total += _cell_s(setup, cell, rate)
    return total


def _cell_s(setup: Setup, cell: Cell, rate: int) -> float:
    """About how long a cell takes, for the progress bar."""
    more = (DRAIN_S / 4 if cell.rpc else 0) + (0 if cell.stream else IDLE_S)
    return warmup_s(rate) + window_s(setup, cell, rate) + 1.5 + more


def _denominators(setup: Setup, rate: int, folder: Path) -> Path:
    """A file with the times alone on wires of `rate`, as homa-bench reads it."""
    wires = simulated.wires(setup, rate, SIZES)
    rows = [{"size": s, "p50_ns": t} for s, t in zip(wires.sizes, wires.times, strict=True)]
    path = folder / f"wires-{rate}.json"
    path.write_text(json.dumps({"unloaded": rows}))
    return path


def _workload(
    setup: Setup, switch: Switch, cells: list[Cell], dilation: float, wires: Path, kept: Kept,
    steps: Steps,
) -> Iterator[Measured]:  # fmt: skip
    before: list[Measured] = []
    for cell in cells:
        levels = cell.point.levels if cell.rpc else LEVELS
        switch.traits = Traits(levels, mtu=setup.mtu)
        with steps(cell.words(), _cell_s(setup, cell, switch.rate_bps)) as step:
            one = kept.run(
                cell, switch.rate_bps, measured.from_json,
                lambda cell=cell, tick=step.tick: _cell(
                    setup, switch, cell, dilation, wires, before, tick
                ),
            )  # fmt: skip
        before.append(one)
        yield one


def _jobs(
    setup: Setup, switch: Switch, cell: Cell, wires: Path, env: Callable[[str], dict[str, str]]
) -> tuple[list[Job], list[Job], float]:
    """The programs of the RPCs, those of the streams, and when the window opens."""
    programs = len(switch.hosts) * (1 + (1 + streams.TO if cell.stream else 0))
    start = time.monotonic() + START_S + START_PROGRAM_S * programs
    opens = start + warmup_s(switch.rate_bps)
    rpcs, flows = [], []
    if cell.rpc:
        for job in nodes.jobs(_way(setup, cell), switch, cell.point, start, env):
            rpcs.append(replace(job, argv=[*job.argv, "--denominators", str(wires)]))
    if cell.stream:
        window = window_s(setup, cell, switch.rate_bps)
        rate = switch.rate_bps
        homad = env if cell.shared else None
        flows = streams.jobs(switch.hosts, cell.stream / 100, rate, opens, window, homad)
    return rpcs, flows, opens


def _way(setup: Setup, cell: Cell) -> Setup:
    """Whoever shares the link between RPCs and streams must carry both."""
    return replace(setup, via="service") if cell.shared else setup


def _model(
    setup: Setup, switch: Switch, cell: Cell, tick: Callable[[], None]
) -> simulated.Model | None:
    """The same RPCs without streams in the simulator, with the delay that the idle lab has."""
    if not cell.rpc or cell.stream:
        return None
    switch.set_buffer(setup.buffer)
    idle = cluster.idle_times(_way(setup, cell), switch, cell.point, tick)
    return simulated.run(setup, cell.point, switch.rate_bps, idle)


def _cell(
    setup: Setup,
    switch: Switch,
    cell: Cell,
    dilation: float,
    wires: Path,
    before: list[Measured],
    tick: Callable[[], None],
) -> Measured:
    """RPCs and streams at the same time, and what both say."""
    window = window_s(setup, cell, switch.rate_bps)
    warmup = warmup_s(switch.rate_bps)
    model = _model(setup, switch, cell, tick)
    opened = 0.0
    watch = Watch()

    def look() -> None:
        watch.look(opened, opened + window)
        tick()

    def attempt() -> list[dict | None]:
        nonlocal opened
        switch.set_buffer(setup.buffer)
        with ExitStack() as stack:
            env: Callable[[str], dict[str, str]] = lambda address: {}  # noqa: E731
            if cell.rpc or cell.shared:
                more = streams.rules(cell.stream / 100, switch.rate_bps) if cell.stream else ""
                more = more if cell.shared else ""
                way = _way(setup, cell)
                env = stack.enter_context(nodes.programs(way, switch, cell.point, more))
            rpcs, flows, opened = _jobs(setup, switch, cell, wires, env)
            watch.forget()
            return run_jobs(
                [*flows, *rpcs], warmup + window + LIMIT_S, look,
                measured=(opened - warmup, opened + window),
            )  # fmt: skip

    found, still = measure_until_still(attempt)
    split = len(found) - (len(switch.hosts) if cell.rpc else 0)
    facts = {
        "link_bps": float(switch.rate_bps),
        "dilation": dilation,
        "window_s": window,
        "busy": watch.share(),
        **_ports(switch),
        **switch.host_queues(cell.kind == "tcp" or (cell.stream > 0 and not cell.shared)),
    }
    hosts = [results.parse_load(data) for data in found[split:]]
    carried = streams.carried(found[:split], opened) if cell.stream else None
    one = _measured(setup, cell, facts, hosts, carried, _wire(found[split:]), still, before)
    if not model:
        return one
    return replace(
        one, facts={**one.facts, **model.facts}, sim_short=shares.simulated(model.deciles)
    )


def _ports(switch: Switch) -> dict[str, float]:
    ports = switch.counters()
    return {
        "drops": float(sum(port.drops for port in ports)),
        "uplink_drops": float(switch.uplink_drops()),
        "peak_queue": float(max((port.peak_backlog or 0) for port in ports)),
    }


def _wire(found: Sequence[dict | None]) -> float:
    """Bits per second that all RPCs that came take on the wire, both directions of each host."""
    return sum(data["throughput"]["offered_wire_gbps"] * 1e9 for data in found if data)


def _measured(
    setup: Setup,
    cell: Cell,
    facts: dict[str, float],
    hosts: list[results.BenchResult],
    carried: streams.Carried | None,
    wire_bps: float,
    still: str,
    before: Sequence[Measured],
) -> Measured:
    """The cell's result from what its programs say."""
    links = setup.hosts * facts["link_bps"]
    if cell.rpc:
        facts |= {
            **lateness.facts_of(hosts),
            "failed": float(sum(node.failed for node in hosts)),
            "completed": float(sum(node.completed for node in hosts)),
            "rpc_share": sum(node.goodput_bps for node in hosts) / links,
            "rpc_wire_share": wire_bps / links,
        }
    if carried:
        facts |= {
            "streams_share": carried.bps / links,
            "streams_fairness": carried.fairness,
            "streams_failed": float(carried.failed),
            "streams_late_s": carried.late_s,
        }
    tenths = nodes.together(hosts) if cell.rpc else []
    must = shares.unavoidable(cell.stream / 100, wire_bps / links, setup.mtu)
    return Measured(
        cell,
        [shares.times([one]) for one in tenths],
        shares.short(tenths) if cell.rpc else None,
        carried.bps if carried else None,
        measured.loss_of(cell, carried.bps if carried else None, before),
        must if cell.stream else None,
        facts,
        measured.doubts(cell, facts, still, before),
    )
