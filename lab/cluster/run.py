# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run`: a figure of the ATC'21 paper on real packets, and the same in the simulator.

A network of namespaces is made for the run (as `./homa lab up` makes it) and removed afterwards,
also when the command is killed. Each workload has a dilation and thus a rate of its own. For each
point: idle round trips by size, all hosts under load, and homa-sim with the same seed, rate,
arrivals, buffer and settings and the delays of the software that were measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial

from lab.bench import results
from lab.bench.histogram import merge
from lab.cluster import simulated
from lab.cluster.beside import Compared, Idle, doubts_of, rows_of
from lab.cluster.points import Point
from lab.cluster.setup import DRAIN_S, Setup, warmup_s
from lab.console import Steps
from lab.net import tcp
from lab.net.homad import homads
from lab.net.hosts import Lab
from lab.net.runner import Job, measure_again, run_jobs
from lab.net.switch import Switch, Traits, build_switch
from lab.paths import homa_bench

PORT = 4000
TIMEOUT_S = 120.0
START_S, START_HOST_S = 0.7, 0.15  # from starting the processes to the first arrival
IDLE_S = 8.0  # about, for the progress bar


def measure(setup: Setup, points: list[Point], tell: Callable[[Compared], None]) -> list[Compared]:
    """All points, each told as soon as it is there."""
    workloads = list(dict.fromkeys(point.workload for point in points))
    found: list[Compared] = []
    with Steps(_seconds(setup, points)) as steps, Lab() as lab:
        switch: Switch | None = None
        for workload in workloads:
            some = [point for point in points if point.workload == workload]
            rate, dilation = setup.rate(some)
            if switch is None:
                with steps(f"making {setup.hosts} hosts", setup.hosts * 0.8):
                    traits = Traits(mtu=setup.mtu)
                    switch = build_switch(lab, setup.hosts, rate, setup.buffer, traits)
                    tcp.tune(switch.hosts)
            switch.rate_bps = rate
            for compared in _workload(setup, switch, some, dilation, steps):
                tell(compared)
                found.append(compared)
    return found


def _seconds(setup: Setup, points: list[Point]) -> float:
    """About how long all of it takes."""
    total = setup.hosts * 0.8
    for point in points:
        rate, _ = setup.rate([other for other in points if other.workload == point.workload])
        total += IDLE_S + warmup_s(rate) + setup.window_s(point, rate) + DRAIN_S / 4
    return total


def _workload(
    setup: Setup, switch: Switch, points: list[Point], dilation: float, steps: Steps
) -> Iterator[Compared]:
    idle: dict[tuple[str, int], Idle] = {}
    for point in points:
        switch.traits = Traits(point.levels, mtu=setup.mtu)
        what = f"{point.workload.upper()}, {point.label}"
        if (point.transport, point.levels) not in idle:
            with steps(f"{what}: idle network", IDLE_S) as step:
                switch.set_buffer(setup.buffer)
                idle[point.transport, point.levels] = _idle(setup, switch, point, step.tick)
        with steps(f"{what}: simulated", IDLE_S):
            model = simulated.run(
                setup, point, switch.rate_bps, idle[point.transport, point.levels]
            )
        seconds = warmup_s(switch.rate_bps) + setup.window_s(point, switch.rate_bps)
        with steps(f"{what}: real packets", seconds + DRAIN_S / 4) as step:
            yield _loaded(
                setup,
                switch,
                point,
                dilation,
                idle[point.transport, point.levels],
                model,
                step.tick,
            )


@contextmanager
def _programs(
    setup: Setup, switch: Switch, point: Point
) -> Iterator[Callable[[str], dict[str, str]]]:
    """What programs of a host, by its address, must know: the rate of the link, or their homad."""
    mbps = switch.rate_bps // 10**6
    if point.transport != "homa":
        yield lambda address: {}
    elif setup.via == "program":
        yield lambda address: {"HOMA_LINK_MBPS": str(mbps)}
    else:
        text = f'[network]\nlink_mbps = {mbps}\nbulk = "off"\n'
        known = simulated.settings(point, setup.link_bps / switch.rate_bps)
        words = [word for setting in known for word in ("--set", setting)]
        with homads(switch.hosts, arguments=tuple(words), settings=text) as running:
            env = {daemon.host.address: daemon.env for daemon in running}
            yield lambda address: env[address]


def _options(setup: Setup, point: Point, rate: int) -> list[str]:
    """What every homa-bench of a point is told."""
    options = ["--transport", point.transport, "--workload", point.workload]
    options += ["--mtu", str(setup.mtu), "--timeout", str(TIMEOUT_S), "--quiet"]
    if point.transport == "homa" and setup.via == "service":
        options += ["--via", "service"]
    elif point.transport == "homa":
        known = simulated.settings(point, setup.link_bps / rate)
        options += ["--via", "afxdp", "--homa-config", ",".join(known)]
    return options


def _idle(setup: Setup, switch: Switch, point: Point, tick: Callable[[], None]) -> Idle:
    """Medians of round trips one at a time between two hosts."""
    client, server = switch.hosts[:2]
    program, options = str(homa_bench()), _options(setup, point, switch.rate_bps)
    samples = str(max(5, min(50, switch.rate_bps // 10**7)))
    with _programs(setup, switch, point) as env:
        serve = [program, "server", "--bind", f"{server.address}:{PORT}", *options]
        ask = [program, "client", "--peer", f"{server.address}:{PORT}", "--bind", client.address]
        ask += ["--unloaded", "--samples", samples, *options, "--json", "{json}"]
        jobs = [
            Job("server", serve, server, background=True, env=env(server.address)),
            Job("client", ask, client, env=env(client.address)),
        ]
        found, _ = measure_again(partial(run_jobs, jobs, 300, tick))
    best = results.best_unloaded([results.parse_unloaded(found[1])])
    return Idle(tuple(int(r["size"]) for r in best), tuple(r["p50_ns"] for r in best))


def _jobs(
    setup: Setup, switch: Switch, point: Point, start: float, env: Callable[[str], dict[str, str]]
) -> list[Job]:
    """A node per host; all begin at `start` (CLOCK_MONOTONIC)."""
    jobs = []
    window = setup.window_s(point, switch.rate_bps)
    for index, host in enumerate(switch.hosts):
        argv = [str(homa_bench()), "node", "--bind", f"{host.address}:{PORT}"]
        for other in switch.hosts:
            argv += ["--peer", f"{other.address}:{PORT}"] if other is not host else []
        argv += _options(setup, point, switch.rate_bps)
        argv += ["--gbps", f"{point.load * switch.rate_bps / 1e9:.10g}"]
        argv += ["--seed", str(setup.seed), "--host-index", str(index)]
        argv += ["--warmup", str(warmup_s(switch.rate_bps)), "--duration", str(window)]
        argv += ["--drain", str(DRAIN_S), "--connect-timeout", "30"]
        argv += ["--start-at", f"mono:{start:.6f}", "--json", "{json}"]
        name = f"{point.transport} on host {index + 1}"
        jobs.append(Job(name, argv, host, urgent=True, env=env(host.address)))
    return jobs


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
    limit = window + warmup_s(switch.rate_bps) + DRAIN_S + 90

    def attempt() -> list[dict | None]:
        switch.set_buffer(setup.buffer)
        with _programs(setup, switch, point) as env:
            start = time.monotonic() + START_S + START_HOST_S * len(switch.hosts)
            return run_jobs(_jobs(setup, switch, point, start, env), limit, tick)

    found, note = measure_again(attempt)
    nodes = [results.parse_load(data) for data in found]
    ports = switch.counters()
    facts = {
        "link_bps": float(switch.rate_bps),
        "dilation": dilation,
        "window_s": window,
        "busy": busy_of(nodes, len(os.sched_getaffinity(0))),
        "programs_cpu_s": sum(node.cpu_s for node in nodes),
        "late_p99_ns": max(node.lag_p99_ns for node in nodes),
        "failed": float(sum(node.failed for node in nodes)),
        "completed": float(sum(node.completed for node in nodes)),
        "goodput_share": sum(node.goodput_bps for node in nodes) / (len(nodes) * switch.rate_bps),
        "drops": float(sum(port.drops for port in ports)),
        "peak_queue": float(max((port.peak_backlog or 0) for port in ports)),
        **model.facts,
    }
    limited = any(node.limited for node in nodes)
    return Compared(
        **{**asdict(point), "label": point.label or point.transport},
        rows=rows_of(together(nodes), model.deciles, idle, model.wires),
        facts=facts,
        doubts=doubts_of(facts, limited, note),
    )


def busy_of(nodes: list[results.BenchResult], cores: int) -> float:
    """The share of this machine's processors that was not idle in the window, whoever used it."""
    return max(node.machine_busy_s / max(node.window_s, 1e-9) for node in nodes) / cores


def together(nodes: list[results.BenchResult]) -> list[results.SizeClass]:
    """The tenths of all hosts' messages."""
    found = []
    for parts in zip(*(node.classes for node in nodes), strict=True):
        found.append(
            results.SizeClass(
                min(one.size_min for one in parts),
                max(one.size_max for one in parts),
                sum(one.failed for one in parts),
                merge(one.latency for one in parts),
                merge(one.slowdown for one in parts),
            )
        )
    return found
