# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run --inventory`: a figure on real hosts, reached over SSH.

Programs, arrivals, tables and the simulator beside them are those of a lab of this machine. What
differs: links are as fast as they are, nothing in the hosts or in the switch is set (so TCP is the
hosts' own), no queue of the switch can be read, runs begin at a moment of Unix time, and a host is
busy by itself. All programs end with the command.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

from lab.bench import results
from lab.cluster import lateness, nodes, simulated
from lab.cluster.points import Point
from lab.cluster.real_and_simulated import Compared, Idle, doubts_of, from_json, rows_of
from lab.cluster.run import DRAIN_S, IDLE_S, LIMIT_S, idle_jobs, idle_of
from lab.cluster.setup import Setup, warmup_s
from lab.cluster.stored_runs import Kept
from lab.console import Steps
from lab.errors import LabError, UsageError
from lab.inventory import preflight, ssh
from lab.inventory.hosts import Inventory
from lab.inventory.remote import Reached
from lab.net.runner import Job, run_jobs
from lab.units import format_rate

START_S, START_HOST_S = 5.0, 0.1  # from the first connection over SSH to the first arrival
NEVER = (0.0, 0.0)  # is measured here: only the hosts' clocks count


@dataclass
class Network:
    """Real hosts as nodes.py sees a switch with hosts."""

    hosts: list[Reached]
    rate_bps: int


def ready(inventory: Inventory) -> None:
    """A LabError with the first of what is wrong with the hosts."""
    scripts = {host.name: preflight.script(host) for host in inventory.hosts}
    wrong = preflight.problems(inventory, ssh.ask(inventory.hosts, scripts))
    if wrong:
        more = f" (and {len(wrong) - 1} more; ./homa lab check)" if len(wrong) > 1 else ""
        raise LabError(f"{wrong[0]}{more}")


def fitting(inventory: Inventory, points: list[Point]) -> list[Point]:
    """`points` with as many priorities as the switch has; of a figure about their number those that it
    has. A UsageError for a transport that cannot be had without changing the hosts."""
    for point in points:
        if point.transport not in ("homa", "tcp", "tcp-pool"):
            raise UsageError(f"--transports {point.transport}: nothing is set up on real hosts")
    if len({point.levels for point in points if point.transport == "homa"}) > 1:
        return [
            point
            for point in points
            if point.transport != "homa" or point.levels <= inventory.priorities
        ]
    return [replace(point, levels=min(point.levels, inventory.priorities)) for point in points]


def check(setup: Setup, points: list[Point]) -> None:
    """A UsageError for what cannot be measured as it is asked for."""
    rate, _ = setup.rate(points)
    if rate != setup.link_bps:
        raise UsageError(
            f"--link {format_rate(setup.link_bps)}: the simulator has no such rate; it has "
            f"{format_rate(rate)}"
        )
    if setup.via == "service" and len({point.levels for point in points}) > 1:
        raise UsageError(
            "--via service: a homad of yours has one number of priorities, and this figure several"
        )


def measure(
    setup: Setup, inventory: Inventory, points: list[Point], kept: Kept,
    tell: Callable[[Compared], None],
) -> list[Compared]:  # fmt: skip
    """All points, each told as soon as it is there; those that are kept are not measured."""
    check(setup, points)
    ready(inventory)
    rate, _ = setup.rate(points)
    network = Network([Reached(host) for host in inventory.hosts], rate)
    idle: dict[str, Idle] = {}
    found: list[Compared] = []
    each = [IDLE_S + warmup_s(rate) + setup.window_s(point, rate) + START_S for point in points]
    with Steps(sum(each)) as steps:
        for point in points:
            found.append(
                kept.run(
                    point, rate, from_json, partial(_point, setup, network, point, idle, steps)
                )
            )
            tell(found[-1])
    return found


def _point(
    setup: Setup, network: Network, point: Point, idle: dict[str, Idle], steps: Steps
) -> Compared:
    what = f"{point.workload.upper()}, {point.label}"
    if point.transport not in idle:
        with steps(f"{what}: idle network", IDLE_S) as step:
            with nodes.programs(setup, network, point) as env:
                jobs = idle_jobs(setup, network, point, env)
                found = run_jobs(remote(jobs), LIMIT_S, step.tick, measured=NEVER)
        idle[point.transport] = idle_of(found)
    alone = idle[point.transport]
    with steps(f"{what}: simulated", IDLE_S):
        model = simulated.run(setup, point, network.rate_bps, alone)
    length = warmup_s(network.rate_bps) + setup.window_s(point, network.rate_bps)
    with steps(f"{what}: real packets", START_S + length + DRAIN_S / 4) as step:
        with nodes.programs(setup, network, point) as env:
            start = time.time() + START_S + START_HOST_S * len(network.hosts)
            jobs = nodes.jobs(setup, network, point, start, env)
            found = run_jobs(remote(jobs), length + LIMIT_S, step.tick, measured=NEVER)
    return _compared(setup, network, point, alone, model, found)


def remote(jobs: list[Job]) -> list[Job]:
    """`jobs` as they run on real hosts: their own programs, with the environment in the words."""
    environment = ssh.environment()
    found = []
    for job in jobs:
        assert isinstance(job.host, Reached)
        words = [job.host.program("homa-bench"), *job.argv[1:]]
        if job.env:
            words = ["env", *(f"{name}={value}" for name, value in job.env.items()), *words]
        found.append(replace(job, argv=words, punctual=False, env=environment))
    return found


def _compared(
    setup: Setup, network: Network, point: Point, idle: Idle, model: simulated.Model,
    found: list[dict | None],
) -> Compared:  # fmt: skip
    hosts = [results.parse_load(data) for data in found]
    rate = network.rate_bps
    facts = {
        "link_bps": float(rate),
        "dilation": 1.0,
        "window_s": setup.window_s(point, rate),
        "busy": max(host.machine_busy_s / max(host.machine_total_s, 1e-9) for host in hosts),
        "programs_cpu_s": sum(host.cpu_s for host in hosts),
        **lateness.facts_of(hosts),
        "failed": float(sum(host.failed for host in hosts)),
        "completed": float(sum(host.completed for host in hosts)),
        "goodput_share": sum(host.goodput_bps for host in hosts) / (len(hosts) * rate),
        "retransmits": float(sum(host.retransmits or 0 for host in hosts)),
        **nodes.counted(hosts),
        **model.facts,
    }
    about = {**asdict(point), "label": point.label or point.transport}
    del about["settings"]
    return Compared(
        **about,
        rows=rows_of(nodes.together(hosts), model.deciles, idle, model.wires),
        facts=facts,
        doubts=doubts_of(facts, ""),
    )
