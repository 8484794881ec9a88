# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs in which something fails: a network of namespaces, which is removed also if it is killed.

A host that is gone loses its link and its programs, so nobody answers for it. A link that is down
loses what is in its queue. Each run also happens in the simulator, where a host that is gone is
cut off for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, replace

from lab.bench import results
from lab.cluster import lateness, nodes, simulated
from lab.cluster.real_and_simulated import doubts_of
from lab.cluster.stored_runs import Kept
from lab.cluster.setup import LIMIT_S, Setup, cores
from lab.console import Steps
from lab.failures import faults, measured
from lab.failures.faults import Cell, Times
from lab.failures.measured import Measured
from lab.net.hosts import Lab, run
from lab.net.runner import Job, measure_until_still, run_jobs
from lab.net.switch import Switch
from lab.sim import program
from lab.sim.spec import Spec, normal

START_S, START_HOST_S = 1.0, 0.15  # from starting the processes to the first arrival


class Breaker:
    """Makes the cell's fault happen to the last host, at its moment, and undoes it."""

    def __init__(self, switch: Switch, cell: Cell) -> None:
        self._switch, self._cell = switch, cell
        self._port = switch.ports[len(switch.hosts) - 1]
        self._victim: int | None = None
        self._due: list[tuple[float, str]] = []

    def plan(self, opens: float, when: Times) -> None:
        """The window opens at `opens` of the monotonic clock."""
        self._due = []
        if self._cell.fault in ("kill", "flap"):
            self._due = [(opens + when.fails, "down")]
        if self._cell.fault == "flap":
            self._due.append((opens + when.back, "up"))

    def started(self, pids: list[int]) -> None:
        """The victim's program is the last."""
        self._victim = pids[-1]

    def tick(self) -> None:
        """Do what is due."""
        while self._due and time.monotonic() >= self._due[0][0]:
            self._link(self._due.pop(0)[1])
            if self._cell.fault == "kill" and self._victim:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._victim, signal.SIGKILL)

    def mend(self) -> None:
        """Whatever happened: the link is up again."""
        self._due = []
        self._link("up")

    def _link(self, state: str) -> None:
        run(["ip", "-n", self._switch.namespace, "link", "set", self._port, state])


def measure(
    setup: Setup, cells: list[Cell], kept: Kept, tell: Callable[[Measured], None]
) -> list[Measured]:
    """All cells, each told as soon as it is there; those that are kept are not measured."""
    rate, dilation = faults.rate(setup, cells)
    found: list[Measured] = []
    total = setup.hosts * nodes.HOST_S + sum(_cell_s(setup, cell, rate) for cell in cells)
    with Steps(total) as steps, Lab() as lab:
        switch = nodes.switched(lab, steps, setup, setup.hosts, rate)
        for cell in cells:
            with steps(cell.words(), _cell_s(setup, cell, rate)) as step:
                one = kept.run(
                    cell, rate, measured.from_json,
                    lambda cell=cell, tick=step.tick: _cell(setup, switch, cell, dilation, tick),
                )  # fmt: skip
            tell(one)
            found.append(one)
    return found


def _cell_s(setup: Setup, cell: Cell, rate: int) -> float:
    when = faults.times(setup, cell, rate)
    return 3 + when.warmup + when.window + when.drain / 3


def _simulated(setup: Setup, cell: Cell, rate: int) -> dict:
    """homa-sim's result; its software takes no time."""
    when = faults.times(setup, cell, rate)
    victim, switch = setup.hosts - 1, setup.hosts
    more: Spec = {
        "workload": cell.workload,
        "load": cell.point.load,
        "port-buffer": str(faults.buffer_of(setup, cell)),
        "apart": victim,
        "warmup": f"{when.warmup:g}s",
        "measure": f"{when.window:g}s",
        "drain": f"{when.drain:g}s",
    }
    if cell.fault in ("kill", "flap"):
        end = min(when.back, when.window + 10 * when.drain)
        first, last = ((when.warmup + at) * 1e9 for at in (when.fails, end))
        more["fail"] = [f"{victim}-{switch}:{first:.0f}ns:{last:.0f}ns"]
    return program.run(normal({**simulated.spec_of(setup, cell.point, rate), **more}))


def _jobs(
    setup: Setup, switch: Switch, cell: Cell, start: float, env: Callable[[str], dict[str, str]]
) -> list[Job]:
    """A node per host, the victim last."""
    when = faults.times(setup, cell, switch.rate_bps)
    victim = f"{switch.hosts[-1].address}:{nodes.PORT}"
    # Homa gives up by itself. TCP would not for a quarter of an hour, so its program does.
    limit = when.gives_up if cell.transport != "homa" else 3 * when.gives_up
    more = ["--duration", f"{when.window:g}", "--drain", f"{when.drain:g}"]
    more += ["--timeout", f"{limit:g}", *(["--check"] if cell.transport == "homa" else [])]
    found = nodes.jobs(setup, switch, cell.point, start, env)
    apart = [replace(job, argv=[*job.argv, *more, "--apart", victim]) for job in found[:-1]]
    last = replace(found[-1], argv=[*found[-1].argv, *more], mortal=cell.fault == "kill")
    return [*apart, last]


def _cell(
    setup: Setup, switch: Switch, cell: Cell, dilation: float, tick: Callable[[], None]
) -> Measured:
    """All hosts client and server of each other while something fails, and the same simulated."""
    sim = _simulated(setup, cell, switch.rate_bps)
    when = faults.times(setup, cell, switch.rate_bps)
    # RPCs to a host that is gone are given up after the window, too.
    length = when.warmup + when.window + when.drain
    breaker = Breaker(switch, cell)

    def both() -> None:
        breaker.tick()
        tick()

    def attempt() -> list[dict | None]:
        breaker.mend()  # what a run before has broken, if this repeats it
        switch.set_buffer(faults.buffer_of(setup, cell))
        with nodes.programs(setup, switch, cell.point) as env:
            start = time.monotonic() + START_S + START_HOST_S * len(switch.hosts)
            breaker.plan(start + when.warmup, when)
            return run_jobs(
                _jobs(setup, switch, cell, start, env), length + LIMIT_S, both, breaker.started,
                measured=(start, start + length),
            )  # fmt: skip

    try:
        found, still = measure_until_still(attempt)
        ports = switch.counters()
    finally:
        breaker.mend()
    rest = [data for data in found[:-1] if data]
    hosts = [results.parse_load(data) for data in rest]
    facts = {
        "link_bps": float(switch.rate_bps),
        "dilation": dilation,
        **{name: value for name, value in asdict(when).items() if value != float("inf")},
        "window_s": when.window,
        "busy": nodes.busy_of(hosts, cores()),
        **lateness.facts_of(hosts),
        "drops": float(sum(port.drops for port in ports)),
        **switch.host_queues(cell.transport != "homa"),
        "sim_drops": float(sim.get("sim", {}).get("counts", {}).get("packets_dropped", 0)),
        "peak_queue": float(max((port.peak_backlog or 0) for port in ports)),
    }
    sim_others, sim_concerned = measured.simulated(sim)
    return Measured(
        cell,
        measured.others(rest, found),
        measured.concerned(rest),
        sim_others,
        sim_concerned,
        facts,
        # Failed RPCs are what is looked for here.
        doubts_of({**facts, "failed": 0.0}, still),
    )
