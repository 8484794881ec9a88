# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Measures bursts: a network of namespaces for the run, which is removed also if it is killed.

The simulator meets the same bursts on links of the same rate with the same buffer, with the delay
of the software that was measured in the idle lab.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lab.bench import results
from lab.bench.histogram import merge
from lab.cluster import lateness, nodes, simulated
from lab.cluster import run as cluster
from lab.cluster.real_and_simulated import doubts_of, percentiles
from lab.cluster.stored_runs import Kept
from lab.cluster.setup import DRAIN_S, LIMIT_S, Setup, cores
from lab.console import Steps
from lab.incast import bursts
from lab.incast.bursts import Cell, Plan
from lab.incast.measured import Measured, from_json
from lab.net import tcp
from lab.net.hosts import Lab
from lab.net.runner import Job, measure_until_still, run_jobs
from lab.net.switch import Switch
from lab.paths import homa_bench
from lab.sim import program
from lab.sim.arrivals import recorded
from lab.sim.spec import Spec, normal
from lab.sim.tails import histogram

START_S, START_PROGRAM_S = 1.5, 0.08  # from starting the programs to the first arrival


def measure(
    setup: Setup, cells: list[Cell], kept: Kept, tell: Callable[[Measured], None]
) -> list[Measured]:
    """All cells, each told as soon as it is there; those that are kept are not measured."""
    most = max(cell.senders for cell in cells)
    rate, dilation = bursts.rate(setup)
    found: list[Measured] = []
    delays: dict[str, float] = {}
    total = most * nodes.HOST_S + sum(_cell_s(setup, cell, rate) for cell in cells)
    with Steps(total) as steps, Lab() as lab, tempfile.TemporaryDirectory() as folder:
        # Responses have four packets, too few to find a loss without a timeout: with 200 ms TCP's P99 of
        # 40 to 1 was 229 ms instead of 43.
        switch = nodes.switched(lab, steps, setup, most + 1, rate, tcp.RTO_MIN_MS)

        def new(cell: Cell, tick: Callable[[], None]) -> Measured:
            transport = cell.point.transport
            if transport not in delays:
                delays[transport] = _delay(setup, switch, cell, tick)
            sim = _simulated(setup, cell, rate, delays[transport], Path(folder))
            return _cell(setup, switch, cell, dilation, sim, tick)

        for cell in cells:
            with steps(cell.words(), _cell_s(setup, cell, rate)) as step:
                one = kept.run(
                    cell, rate, from_json, lambda cell=cell, tick=step.tick: new(cell, tick)
                )
            tell(one)
            found.append(one)
    return found


def _cell_s(setup: Setup, cell: Cell, rate: int) -> float:
    plan = bursts.plan(setup, cell.senders, rate)
    return 2 + 0.1 * cell.senders + plan.warmup + plan.window


def _delay(setup: Setup, switch: Switch, cell: Cell, tick: Callable[[], None]) -> float:
    """What the software of a host takes for a message, ns, by a short one in the idle lab."""
    switch.set_buffer(setup.buffer)
    point = replace(cell.point, workload=f"fixed:{bursts.REQUEST}")
    idle = cluster.idle_times(setup, switch, point, tick)
    alone = simulated.alone(setup, point, switch.rate_bps, idle.sizes[0])
    return max(0.0, idle.times[0] - alone) / 2


def _simulated(setup: Setup, cell: Cell, rate: int, delay: float, folder: Path) -> dict:
    """homa-sim's result of the same bursts."""
    plan = bursts.plan(setup, cell.senders, rate)
    file = recorded(folder, f"{cell.senders}-to-1", plan.arrivals())
    more: Spec = {
        "hosts": cell.senders + 1,
        "arrivals": file,
        "response-size": bursts.RESPONSE,
        "warmup": f"{plan.warmup * 1e9:.0f}ns",
        "measure": f"{plan.window * 1e9:.0f}ns",
        "drain": f"{simulated.drain_s(setup.link_bps / rate):g}s",
    }
    spec = {**simulated.spec_of(setup, cell.point, rate, delay), **more}
    return {**program.run(normal(spec)), "delay_ns": delay}


def _jobs(
    setup: Setup, switch: Switch, cell: Cell, plan: Plan, start: float,
    env: Callable[[str], dict[str, str]],
) -> list[Job]:  # fmt: skip
    """A server in each host but the first, and the client there, last, which begins at `start`."""
    client, servers = switch.hosts[0], switch.hosts[1 : cell.senders + 1]
    options = nodes.options(setup, cell.point, switch.rate_bps)
    jobs = []
    ask = [str(homa_bench()), "client", "--bind", client.address, *options]
    for number, host in enumerate(servers, 1):
        address = f"{host.address}:{nodes.PORT}"
        ask += ["--peer", address]
        argv = [str(homa_bench()), "server", "--bind", address, *options, "--json", "{json}"]
        name = f"sender {number}"
        jobs.append(Job(name, argv, host, background=True, punctual=True, env=env(host.address)))
    ask += ["--response-size", str(bursts.RESPONSE), "--burst"]
    ask += ["--rate", f"{cell.senders / plan.period:.12g}"]
    ask += ["--warmup", f"{plan.warmup:.9f}", "--duration", f"{plan.window:.9f}"]
    slower = setup.link_bps / switch.rate_bps
    ask += ["--drain", f"{simulated.drain_s(slower):g}", "--connect-timeout", "60"]
    ask += ["--start-at", f"mono:{start:.6f}", "--json", "{json}"]
    return [*jobs, Job("client", ask, client, punctual=True, env=env(client.address))]


def _cell(
    setup: Setup,
    switch: Switch,
    cell: Cell,
    dilation: float,
    sim: dict,
    tick: Callable[[], None],
) -> Measured:
    """Bursts on real packets, and the simulator's word beside them."""
    plan = bursts.plan(setup, cell.senders, switch.rate_bps)
    length = plan.warmup + plan.window
    some = replace(switch, hosts=switch.hosts[: cell.senders + 1])

    def attempt() -> list[dict | None]:
        switch.set_buffer(setup.buffer)
        with nodes.programs(setup, some, cell.point) as env:
            start = time.monotonic() + START_S + START_PROGRAM_S * cell.senders
            return run_jobs(
                _jobs(setup, some, cell, plan, start, env), length + DRAIN_S + LIMIT_S, tick,
                measured=(start, start + length),
            )  # fmt: skip

    found, still = measure_until_still(attempt)
    client = results.parse_load(found[-1])
    port = switch.counters()[0]
    shape = merge(one.latency for one in client.classes)
    facts = {
        "link_bps": float(switch.rate_bps),
        "dilation": dilation,
        "window_s": plan.window,
        "bursts": float(plan.count),
        "busy": nodes.busy_of([client], cores()),
        **lateness.facts_of([client]),
        "failed": float(client.failed),
        "drops": float(port.drops),
        "uplink_drops": float(switch.uplink_drops()),
        **switch.host_queues(cell.kind == "tcp"),
        "peak_queue": float(port.peak_backlog or 0),
        "retransmits": float(sum((data or {}).get("retransmits") or 0 for data in found)),
        **_sim_facts(sim),
    }
    return Measured(
        cell,
        shape.count,
        int(facts["sim_completed"]),
        bursts.least_s(setup, cell.senders, switch.rate_bps) * 1e9,
        percentiles(shape),
        percentiles(merge(histogram(row.get("latency_ns")) for row in sim.get("deciles") or [])),
        facts,
        doubts_of(facts, still),
    )


def _sim_facts(sim: dict) -> dict[str, float]:
    inside = sim.get("sim", {})
    return {
        "sim_delay_ns": float(sim["delay_ns"]),
        "sim_completed": float(sim.get("latency_ns", {}).get("count", 0)),
        "sim_drops": float(inside.get("counts", {}).get("packets_dropped", 0)),
        "sim_peak_queue": float(inside.get("queues", {}).get("host-down", {}).get("max_bytes", 0)),
        "sim_unfinished": float(inside.get("unfinished", 0)),
    }
