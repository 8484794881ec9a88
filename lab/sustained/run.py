# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Measures loads: a network of namespaces for the run, which is removed also if it is killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from lab.bench import results
from lab.cluster import lateness, nodes, simulated
from lab.cluster.real_and_simulated import doubts_of
from lab.cluster.stored_runs import Kept
from lab.cluster.setup import DRAIN_S, LIMIT_S, Setup, cores, warmup_s
from lab.console import Steps
from lab.net.hosts import Lab
from lab.net.runner import measure_until_still, run_jobs
from lab.net.switch import Switch
from lab.sim import program
from lab.sim.spec import Spec, normal
from lab.sustained import loads
from lab.sustained.loads import Cell, Measured

START_S, START_HOST_S = 1.0, 0.15  # from starting the processes to the first arrival


def rate(setup: Setup, cells: list[Cell]) -> tuple[int, float]:
    """Bits per second of all links, and the dilation."""
    return setup.rate([cell.point(setup.mtu) for cell in cells])


def measure(
    setup: Setup, cells: list[Cell], kept: Kept, tell: Callable[[Measured], None]
) -> list[Measured]:
    """All runs, each told as soon as it is there; those that are kept are not measured."""
    link_bps, dilation = rate(setup, cells)
    each = 2 + warmup_s(link_bps) + setup.longest_s + DRAIN_S / 4
    found: list[Measured] = []
    with Steps(setup.hosts * nodes.HOST_S + each * len(cells)) as steps, Lab() as lab:
        switch = nodes.switched(lab, steps, setup, setup.hosts, link_bps)
        for cell in cells:
            with steps(cell.words(), each) as step:
                one = kept.run(
                    cell, link_bps, loads.from_json,
                    lambda cell=cell, tick=step.tick: _cell(setup, switch, cell, dilation, tick),
                )  # fmt: skip
            tell(one)
            found.append(one)
    return found


def _simulated(setup: Setup, cell: Cell, link_bps: int) -> dict:
    """homa-sim's result with the oracle's backlog beside its own; its software takes no time."""
    point = cell.point(setup.mtu)
    more: Spec = {
        "workload": cell.workload,
        "load": point.load,
        "warmup": f"{warmup_s(link_bps):g}s",
        "measure": f"{setup.longest_s:g}s",
        "drain": "0s",
        "against-oracle": "true",
        "seed": cell.seed,
    }
    return program.run(normal({**simulated.spec_of(setup, point, link_bps), **more}))


def _cell(
    setup: Setup, switch: Switch, cell: Cell, dilation: float, tick: Callable[[], None]
) -> Measured:
    """All hosts client and server of each other, as long as may be, and the same simulated."""
    seeded, point = replace(setup, seed=cell.seed), cell.point(setup.mtu)
    sim = _simulated(setup, cell, switch.rate_bps)
    length = setup.longest_s + warmup_s(switch.rate_bps)

    def attempt() -> list[dict | None]:
        switch.set_buffer(setup.buffer)
        with nodes.programs(setup, switch, point) as env:
            start = time.monotonic() + START_S + START_HOST_S * len(switch.hosts)
            jobs = nodes.jobs(seeded, switch, point, start, env)
            window = ["--duration", f"{setup.longest_s:g}"]
            return run_jobs(
                [replace(job, argv=[*job.argv, *window]) for job in jobs],
                length + LIMIT_S, tick, measured=(start, start + length),
            )  # fmt: skip

    found, still = measure_until_still(attempt)
    hosts = [results.parse_load(data) for data in found]
    links = len(hosts) * switch.rate_bps
    facts = {
        "link_bps": float(switch.rate_bps),
        "dilation": dilation,
        "window_s": setup.longest_s,
        "busy": nodes.busy_of(hosts, cores()),
        **lateness.facts_of(hosts),
        "failed": float(sum(node.failed for node in hosts)),
        **nodes.counted(hosts),
        "completed": float(sum(node.completed for node in hosts)),
        "goodput_share": sum(node.goodput_bps for node in hosts) / links,
        "drops": float(sum(port.drops for port in switch.counters())),
        "uplink_drops": float(switch.uplink_drops()),
        **switch.host_queues(cell.transport != "homa"),
    }
    lab, simulation = loads.growths([data for data in found if data], sim)
    return Measured(cell, lab, simulation, facts, doubts_of(facts, still))
