# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run`: a figure of the ATC'21 paper on real packets, and the same in the simulator.

A network of namespaces is made for the run (as `./homa lab up` makes it) and removed afterwards,
also when the command is killed. Each workload has a dilation and thus a rate of its own. For each
point: idle round trips by size, all hosts under load, and homa-sim with the same seed, rate,
arrivals, buffer and settings and the delays of the software that were measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

from lab.bench import results
from lab.cluster import lateness, nodes, simulated
from lab.cluster.real_and_simulated import Compared, Idle, doubts_of, from_json, rows_of
from lab.cluster.points import Point
from lab.cluster.setup import DRAIN_S, LIMIT_S, Setup, cores, warmup_s
from lab.cluster.stored_runs import Kept
from lab.console import Steps
from lab.net import uplink
from lab.net.hosts import Lab
from lab.net.runner import Job, measure_again, measure_until_still, run_jobs
from lab.net.switch import Switch, Traits

START_S, START_HOST_S = 0.7, 0.15  # from starting the processes to the first arrival
IDLE_S = 12.0  # about, for the progress bar
# Of each size, as far as so many seconds for all sizes allow it; the longest have a few in any case.
IDLE_SAMPLES, IDLE_MEASURED_S = 50, 6.0
ETHERNET = 14  # bytes of its header
# The shortest says what the software takes.
IDLE_SIZES = (8, 64, 200, 500, 1000, 2500, 5000, 20_000, 60_000, 200_000, 500_000, 1_000_000)


def measure(
    setup: Setup, points: list[Point], kept: Kept, tell: Callable[[Compared], None]
) -> list[Compared]:
    """All points, each told as soon as it is there; those that are kept are not measured."""
    workloads = list(dict.fromkeys(point.workload for point in points))
    found: list[Compared] = []
    with Steps(_seconds(setup, points)) as steps, Lab() as lab:
        switch: Switch | None = None
        for workload in workloads:
            some = [point for point in points if point.workload == workload]
            rate, dilation = setup.rate(some)
            if switch is None:
                switch = nodes.switched(lab, steps, setup, setup.hosts, rate)
            switch.rate_bps = rate
            for compared in _workload(setup, switch, some, dilation, kept, steps):
                tell(compared)
                found.append(compared)
    return found


def _seconds(setup: Setup, points: list[Point]) -> float:
    """About how long all of it takes."""
    total = setup.hosts * nodes.HOST_S
    for point in points:
        rate, _ = setup.rate([other for other in points if other.workload == point.workload])
        total += IDLE_S + warmup_s(rate) + setup.window_s(point, rate) + DRAIN_S / 4
    return total


def _workload(
    setup: Setup, switch: Switch, points: list[Point], dilation: float, kept: Kept, steps: Steps
) -> Iterator[Compared]:
    idle: dict[tuple[str, int], Idle] = {}
    for point in points:
        yield kept.run(
            point, switch.rate_bps, from_json,
            lambda point=point: _point(setup, switch, point, dilation, idle, steps),
        )  # fmt: skip


def _point(
    setup: Setup, switch: Switch, point: Point, dilation: float,
    idle: dict[tuple[str, int], Idle], steps: Steps,
) -> Compared:  # fmt: skip
    """A point measured: the idle network unless `idle` knows it, the simulator, all hosts."""
    switch.traits = Traits(point.levels, mtu=setup.mtu)
    nodes.tune(switch, point)
    what = f"{point.workload.upper()}, {point.label}"
    alone = idle.get((point.transport, point.levels))
    if alone is None:
        with steps(f"{what}: idle network", IDLE_S) as step:
            switch.set_buffer(setup.buffer)
            alone = idle_times(setup, switch, point, step.tick)
        idle[point.transport, point.levels] = alone
    if point.simulated:
        with steps(f"{what}: simulated", IDLE_S):
            model = simulated.run(setup, point, switch.rate_bps, alone)
    else:
        model = simulated.nothing(setup, switch.rate_bps, alone)
    seconds = warmup_s(switch.rate_bps) + setup.window_s(point, switch.rate_bps)
    with steps(f"{what}: real packets", seconds + DRAIN_S / 4) as step:
        return _loaded(setup, switch, point, dilation, alone, model, step.tick)


def pause_us(setup: Setup, rate: int) -> int:
    """Microseconds between two messages on the idle network: the time of two full packets. A link lets
    a packet go when its time begins, and the next one when that time is over. So messages that follow
    each other at once take no less than a packet's time: on links of 5 Mbit/s the shortest took the
    192 µs of its 120 bytes, whatever the software took."""
    frame = setup.mtu + ETHERNET + uplink.FRAME_OVERHEAD
    return math.ceil(2 * frame * 8 / rate * 1e6)


def idle_times(setup: Setup, switch: Switch, point: Point, tick: Callable[[], None]) -> Idle:
    """Medians of round trips one at a time between two hosts."""
    with nodes.programs(setup, switch, point) as env:
        jobs = idle_jobs(setup, switch, point, env)
        found, _ = measure_again(partial(run_jobs, jobs, 300, tick))
    return idle_of(found)


def idle_of(found: list[dict | None]) -> Idle:
    """What the client of idle_jobs() says."""
    best = results.best_unloaded([results.parse_unloaded(found[1])])
    return Idle(tuple(int(r["size"]) for r in best), tuple(r["p50_ns"] for r in best))


def idle_jobs(
    setup: Setup, switch: nodes.Network, point: Point, env: Callable[[str], dict[str, str]]
) -> list[Job]:
    """A server and a client that asks it, one RPC at a time."""
    client, server = switch.hosts[:2]
    program, options = nodes.program(point), nodes.options(setup, point, switch.rate_bps)
    serve = [*program, "server", "--bind", f"{server.address}:{nodes.PORT}", *options]
    if setup.real:
        # It ends also if nobody can tell it to.
        serve += ["--duration", f"{LIMIT_S:g}"]
    ask = [
        *program,
        "client",
        "--peer",
        f"{server.address}:{nodes.PORT}",
        "--bind",
        client.address,
    ]
    sizes = ",".join(map(str, IDLE_SIZES))
    ask += ["--unloaded", "--samples", str(IDLE_SAMPLES), "--sizes", sizes, *options]
    ask += ["--pause", str(pause_us(setup, switch.rate_bps))]
    ask += ["--duration", str(IDLE_MEASURED_S), "--connect-timeout", "30", "--json", "{json}"]
    return [
        Job("server", serve, server, background=True, punctual=True, env=env(server.address)),
        Job("client", ask, client, punctual=True, env=env(client.address)),
    ]


def _loaded(
    setup: Setup,
    switch: Switch,
    point: Point,
    dilation: float,
    idle: Idle,
    model: simulated.Model,
    tick: Callable[[], None],
) -> Compared:
    """All hosts client and server of each other, and the simulator's word beside it."""
    window = setup.window_s(point, switch.rate_bps)
    length = warmup_s(switch.rate_bps) + window

    def attempt() -> list[dict | None]:
        switch.set_buffer(setup.buffer)
        with nodes.programs(setup, switch, point) as env:
            start = time.monotonic() + START_S + START_HOST_S * len(switch.hosts)
            jobs = nodes.jobs(setup, switch, point, start, env)
            return run_jobs(jobs, length + LIMIT_S, tick, measured=(start, start + length))

    found, still = measure_until_still(attempt)
    hosts = [results.parse_load(data) for data in found]
    ports = switch.counters()
    facts = {
        "link_bps": float(switch.rate_bps),
        "dilation": dilation,
        "window_s": window,
        "busy": nodes.busy_of(hosts, cores()),
        "programs_cpu_s": sum(node.cpu_s for node in hosts),
        **lateness.facts_of(hosts),
        "failed": float(sum(node.failed for node in hosts)),
        "completed": float(sum(node.completed for node in hosts)),
        "goodput_share": sum(node.goodput_bps for node in hosts) / (len(hosts) * switch.rate_bps),
        "retransmits": float(sum(node.retransmits or 0 for node in hosts)),
        **nodes.counted(hosts),
        "drops": float(sum(port.drops for port in ports)),
        "uplink_drops": float(switch.uplink_drops()),
        **switch.host_queues(point.by_kernel),
        "peak_queue": float(max((port.peak_backlog or 0) for port in ports)),
        **model.facts,
    }
    about = {**asdict(point), "label": point.label or point.transport}
    del about["settings"]
    return Compared(
        **about,
        rows=rows_of(nodes.together(hosts), model.deciles, idle, model.wires),
        facts=facts,
        doubts=doubts_of(facts, still),
    )
