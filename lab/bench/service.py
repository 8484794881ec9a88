# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench service`: RPCs through homad beside kernel TCP and UNIX sockets, in alternation.

Two hosts joined by a veth pair, with the kernel's defaults. A case with homad starts a daemon in
each of its hosts, in the default mode, and ends it again, so that no other case runs beside it.
In every round each case runs once; ratios are taken round by round. Nothing has priority over
anything: what the scheduler makes of it is what is measured.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from lab import machine
from lab.bench import calls, light, results
from lab.net import rootless, tcp
from lab.bench.run import check as check_times
from lab.bench.run import spread
from lab.bench.configs import Metric
from lab.console import Steps, console, table
from lab.errors import LabError, UsageError
from lab.net.homad import Homad, homads
from lab.net.hosts import Host, Lab
from lab.output import write_json
from lab.paths import homa_bench, ring
from lab.net.runner import Job, measure_again, run_jobs
from lab.bench.service_cases import GROUPS, RATIOS, RING, SERVICE, Case, Group, Ratio, cases
from lab.units import format_ratio

WARMUP_S = 0.2
START_S = 1.0  # what starting and connecting takes, for the progress bar
SETTLE_S = 0.5  # a daemon that shall be idle has ended all that starting brings
MANY_START_S = 3.0  # until so many programs have started and attached
FIRST_PORT = 4000
NAMES = ",".join(group.key for group in GROUPS)


@dataclass
class Series:
    """A case's values, a dict by metric name per round (None: failed in that round)."""

    case: Case
    rounds: list[dict[str, float] | None] = field(default_factory=list)
    problem: str = ""

    def values(self, metric: str) -> list[float]:
        """This metric in every round that has it."""
        return [values[metric] for values in self.rounds if values and metric in values]


@contextmanager
def hog(present: bool) -> Iterator[None]:
    """A process of ordinary priority that never sleeps, if `present`."""
    if not present:
        yield
        return
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


class Runner:
    """Runs single cases between two hosts."""

    def __init__(self, pair: tuple[Host, Host], seconds: float) -> None:
        self.pair = pair
        self.seconds = seconds
        self.port = FIRST_PORT

    def run(self, case: Case, group: Group) -> dict[str, float]:
        """One measurement."""
        self.port += 1
        hosts = self.pair[:1] if case.local or not group.mode else self.pair
        prefix = ("setsid",) if case.sessions else ()
        with hog(case.hog):
            if case.transport == RING and not case.rate:
                return self._ring(case, group)
            if case.options != SERVICE:
                return self._measure(case, group, [])
            with homads(hosts, prefix) as daemons:
                if not group.mode:
                    return self._idle(case, daemons[0])
                return self._measure(case, group, daemons)

    def _measure(self, case: Case, group: Group, daemons: list[Homad]) -> dict[str, float]:
        if case.rate:
            return self._light(case, group, daemons)
        if not daemons or group.key != "rtt":
            return self._load(case, group, daemons)
        return calls.during(daemons, lambda: self._load(case, group, daemons))

    def _command(self, case: Case, side: int, words: list[str]) -> list[str]:
        argv = [str(homa_bench()), words[0], "--transport", case.transport, *case.options]
        if case.cores is not None:
            cores = sorted(os.sched_getaffinity(0))
            argv += ["--pin", str(cores[case.cores[side]])]
        return [*(("setsid",) if case.sessions else ()), *argv, *words[1:], "--quiet"]

    def _load(self, case: Case, group: Group, daemons: list[Homad]) -> dict[str, float]:
        client = self.pair[0]
        server = client if case.local else self.pair[1]
        unix = case.transport.startswith("unix")
        address = f"@homa-{os.getpid()}-{self.port}" if unix else f"{server.address}:{self.port}"
        env = [daemon.env for daemon in (daemons[0], daemons[-1])] if daemons else [{}, {}]
        words = ["client", "--peer", address, "--mode", group.mode, "--warmup", str(WARMUP_S)]
        words += ["--duration", str(self.seconds), "--json", "{json}"]
        if case.outstanding:
            words += ["--outstanding", str(case.outstanding)]
        if case.apps > 1:
            words += ["--start-at", f"mono:{time.monotonic() + MANY_START_S}"]
            words += ["--connect-timeout", "30"]
        serve = self._command(case, 1, ["server", "--bind", address])
        jobs = [Job("server", serve, server, background=True, env=env[1])]
        for number in range(case.apps):
            argv = self._command(case, 0, words)
            jobs.append(Job(f"client {number + 1}", argv, client, env=env[0]))
        found, _ = measure_again(lambda: run_jobs(jobs, self.seconds + 60))
        return extract(group, found[1:])

    def _ring_jobs(self, case: Case, seconds: float, *more: str) -> list[Job]:
        client, server = self.pair
        words = [server.address, str(case.outstanding), str(seconds), "{json}", *more]
        argv = [*(("setsid",) if case.sessions else ()), str(ring())]
        return [
            Job("ring", [*argv, "server", server.device], server, background=True),
            Job("ring", [*argv, "client", client.device, *words], client),
        ]

    def _ring(self, case: Case, group: Group) -> dict[str, float]:
        jobs = self._ring_jobs(case, self.seconds)
        found, _ = measure_again(lambda: run_jobs(jobs, self.seconds + 60))
        return light.ring_values(found[1], {metric.name for metric in group.metrics})

    def _light(self, case: Case, group: Group, daemons: list[Homad]) -> dict[str, float]:
        seconds = light.window(self.seconds, case.rate)
        pids = [daemon.pid for daemon in daemons]
        opens = time.monotonic() + START_S + WARMUP_S
        scales = light.Scales(opens, opens + seconds, pids)
        found = self._open_loop(case, daemons, opens, seconds, scales)
        if case.transport == RING:
            latencies = light.ring_values(found, {metric.name for metric in group.metrics})
        else:
            latencies = light.latencies(results.parse_load(found))
        values = {**latencies, **scales.values(case.rate)}
        if light.can_count():
            opens = time.monotonic() + START_S + WARMUP_S
            counter = light.Counter(opens, pids)
            self._open_loop(case, daemons, opens, light.COUNT_S + WARMUP_S, counter)
            values.update(counter.values(case.rate))
        return values

    def _open_loop(
        self,
        case: Case,
        daemons: list[Homad],
        opens: float,
        seconds: float,
        watch: light.Scales | light.Counter,
    ) -> dict | None:
        self.port += 1
        if case.transport == RING:
            jobs = self._ring_jobs(case, seconds, str(case.rate), str(opens))
            return run_jobs(jobs, seconds + 60, watch.tick, watch.started)[1]
        client, server = self.pair
        address = f"{server.address}:{self.port}"
        udp = ["--udp-port", str(self.port)] if "udp" in case.options else []
        env = [daemon.env for daemon in (daemons[0], daemons[-1])] if daemons else [{}, {}]
        peer = f"{address}/{self.port}" if udp else address
        words = ["client", "--peer", peer, "--size", "100", "--rate", str(case.rate)]
        words += ["--lead", "0", "--start-at", f"mono:{opens - WARMUP_S}"]
        words += ["--warmup", str(WARMUP_S), "--duration", str(seconds), "--json", "{json}"]
        serve = self._command(case, 1, ["server", "--bind", address, *udp])
        jobs = [
            Job("server", serve, server, background=True, env=env[1]),
            Job("client", self._command(case, 0, words), client, env=env[0]),
        ]
        return run_jobs(jobs, seconds + 60, watch.tick, watch.started)[1]

    def _idle(self, case: Case, daemon: Homad) -> dict[str, float]:
        argv = self._command(case, 1, ["server", "--bind", f":{self.port}"])
        apps = [
            subprocess.Popen(
                self.pair[0].command(argv),
                env={**os.environ, **daemon.env},
                stderr=subprocess.DEVNULL,
            )
            for _ in range(case.apps)
        ]
        try:
            time.sleep(SETTLE_S)
            before = daemon.effort()
            time.sleep(max(self.seconds, 1.0))
            percent, wakeups = daemon.effort().since(before)
            if any(app.poll() is not None for app in apps):
                raise LabError("the quiet application ended")
        finally:
            for app in apps:
                app.terminate()
                app.wait()
        return {"cpu_percent": percent, "wakeups": wakeups}


def extract(group: Group, documents: list[dict | None]) -> dict[str, float]:
    """The group's metrics of what its clients reported."""
    loads = [results.parse_load(document) for document in documents]
    rates = [load.rps for load in loads]
    if min(rates) <= 0:
        raise LabError("no RPC was completed")
    failed = sum(load.failed for load in loads)
    if failed:
        raise LabError(f"{failed} RPCs failed")
    latency = loads[0].classes[0].latency
    busy = max(loads[0].machine_busy_s, 1e-9)
    values = {
        "median": latency.percentile(50) / 1e3,
        "p99": latency.percentile(99) / 1e3,
        "rate": sum(rates),
        "goodput": sum(load.goodput_bps for load in loads),
        "share": max(rates) / min(rates),
        "cpu_us": busy * 1e6 / (sum(rates) * loads[0].window_s),
    }
    names = {metric.name for metric in group.metrics} | {"cpu_us"}
    return {name: float(value) for name, value in values.items() if name in names}


def compare(series: list[Series]) -> dict[str, dict[str, object]]:
    """All ratios that the rounds allow."""
    by_key = {one.case.key: one for one in series}
    found: dict[str, dict[str, object]] = {}
    for ratio in RATIOS:
        per_round = _ratio(ratio, by_key)
        if per_round:
            found[ratio.key] = spread(per_round)
    return found


def _ratio(ratio: Ratio, by_key: dict[str, Series]) -> list[float]:
    over = by_key.get(ratio.over)
    rivals = [by_key[key] for key in ratio.under if key in by_key]
    best = min if ratio.metric.lower else max
    values = []
    for number, mine in enumerate(over.rounds if over else []):
        name = ratio.metric.name
        theirs = [done[name] for rival in rivals if (done := rival.rounds[number])]
        if mine and theirs:
            values.append(mine[name] / best(theirs))
    return values


def measure(
    groups: list[Group], rounds: int, seconds: float
) -> tuple[list[Series], dict[str, object]]:
    """All cases in `rounds` rounds. What fails in a round is left out there, with the reason."""
    by_key = {group.key: group for group in groups}
    series = [Series(case) for case in cases(set(by_key))]
    step_s = seconds + WARMUP_S + START_S
    with Steps(rounds * len(series) * step_s) as steps, Lab() as lab:
        pair = lab.pair("s", 11, offloads=True)
        tuned = tcp.tune(list(pair))
        runner = Runner(pair, seconds)
        for number in range(rounds):
            for one in series:
                label = f"round {number + 1}: {one.case.group}: {one.case.label}"
                with steps(label, step_s) as step:
                    step.tick()
                    try:
                        one.rounds.append(runner.run(one.case, by_key[one.case.group]))
                    except LabError as error:
                        one.rounds.append(None)
                        one.problem = f"round {number + 1}: {error}"
    return series, tuned


def check(groups: str, rounds: int, seconds: float) -> list[Group]:
    """The groups that are meant; UsageError if something cannot be."""
    known = {group.key: group for group in GROUPS}
    names = [name for name in groups.split(",") if name] or list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown group '{name}'; use some of {NAMES}")
    check_times(rounds, seconds)
    return [group for group in GROUPS if group.key in names]


def main(groups: list[Group], rounds: int, seconds: float, json_file: Path | None) -> None:
    """Measure, show, save."""
    here = machine.describe()
    if rootless.mode() != "root":
        raise LabError("bench service starts daemons in network namespaces: run it as root")
    homa_bench()
    series, tuned = measure(groups, rounds, seconds)
    ratios = compare(series)
    out = console()
    out.print(here.one_line(), markup=False)
    if here.warning():
        out.print(here.warning(), markup=False)
    for group in groups:
        if any(any(one.rounds) for one in series if one.case.group == group.key):
            out.print(group_table(group, series))
    for one in series:
        if text := calls.sentence({name: one.values(name) for name in calls.KINDS}):
            out.print(text, markup=False)
    if ratios:
        out.print(ratio_table(ratios))
    out.print(f"Medians of {rounds} rounds and their spread.", markup=False)
    for one in series:
        if one.problem:
            out.print(f"{one.case.key}: {one.problem}", markup=False)
    if json_file:
        write_json(json_file, as_json(groups, series, ratios, here, tuned, seconds))
        out.print(f"Everything measured: {json_file}", markup=False)
    if not any(values for one in series for values in one.rounds):
        raise LabError("nothing could be measured; the reasons are above")


def as_json(
    groups: list[Group],
    series: list[Series],
    ratios: dict,
    here: machine.Machine,
    tuned: dict[str, object],
    seconds: float,
) -> dict[str, object]:
    """The whole result as a document (docs/homad-performance.md describes it)."""
    metrics = {group.key: group.metrics for group in groups}
    autogroup = Path("/proc/sys/kernel/sched_autogroup_enabled")
    return {
        "what": "service",
        "machine": here.as_json(),
        "autogroup": autogroup.exists() and autogroup.read_text().strip() == "1",
        "seconds": seconds,
        "tcp": tuned,
        "cases": {
            one.case.key: {
                "label": one.case.label,
                "group": one.case.group,
                "options": list(one.case.options),
                "cores": one.case.cores,
                "problem": one.problem,
                **{
                    name: spread(one.values(name))
                    for name in [m.name for m in metrics[one.case.group]] + ["cpu_us", *calls.KINDS]
                    if any(values and name in values for values in one.rounds)
                },
            }
            for one in series
        },
        "ratios": ratios,
    }


def _show(metric: Metric, value: float) -> str:
    value /= metric.scale
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def group_table(group: Group, series: list[Series]) -> Table:
    """A row per case of the group. What has many columns is shown without the spread of each."""
    spreads = len(group.metrics) < 5
    columns = [
        word
        for metric in group.metrics
        for word in ((metric.title, "\nspread") if spreads else (metric.title,))
    ]
    with_cpu = ["CPU µs\nper RPC"] if spreads and group.mode else []
    grid = table(group.title, "", *columns, *with_cpu, tight=True)
    for one in series:
        if one.case.group != group.key or not any(one.rounds):
            continue
        cells = [one.case.label]
        for metric in group.metrics:
            values = one.values(metric.name)
            cells.append(_show(metric, statistics.median(values)) if values else "–")
            if spreads:
                cells.append(f"{_show(metric, min(values))}–{_show(metric, max(values))}")
        if with_cpu:
            cpu = one.values("cpu_us")
            cells.append(f"{statistics.median(cpu):.2f}" if cpu else "–")
        grid.add_row(*cells)
    return grid


def ratio_table(ratios: dict) -> Table:
    """A row per ratio."""
    grid = table("homad to", "", "ratio", "spread")
    for ratio in RATIOS:
        found = ratios.get(ratio.key)
        if found:
            low, high = format_ratio(found["min"]), format_ratio(found["max"])
            grid.add_row(ratio.text, format_ratio(found["median"]), f"{low}–{high}")
    return grid
