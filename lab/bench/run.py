# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench rtt|rate|goodput`: Homa beside every TCP configuration, in alternation.

Two hosts joined by a veth pair. In every round each configuration runs once, so that a slow
moment of the machine hits all alike; Homa's ratio is to the TCP configuration that was best
in the same round, whichever that was, and its spread over the rounds is shown with it.
"""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from lab import machine
from lab.bench import results
from lab.net import rootless, tcp
from lab.bench.configs import METRICS, TITLES, Config, Metric, configurations
from lab.console import Steps, console, table
from lab.errors import LabError, UsageError
from lab.net.hosts import Host, Lab
from lab.output import write_json
from lab.paths import homa_bench, known_transports
from lab.net.runner import Job, measure_again, run_jobs
from lab.units import format_ratio

WARMUP_S = 0.2
START_S = 0.4  # what starting and connecting takes, for the progress bar
FIRST_PORT = 4000


@dataclass
class Series:
    """A configuration's values, a dict by metric name per round; `problem`: why it cannot run."""

    config: Config
    rounds: list[dict[str, float]] = field(default_factory=list)
    problem: str = ""

    def values(self, metric: str) -> list[float]:
        """This metric in every round."""
        return [values[metric] for values in self.rounds]


def spread(values: list[float]) -> dict[str, object]:
    """Median, least, most, and the rounds themselves."""
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "rounds": values,
    }


def extract(what: str, data: object) -> dict[str, float]:
    """The metrics of one homa-bench result."""
    result = results.parse_load(data)
    latency = result.classes[0].latency
    busy = max(result.machine_busy_s, result.cpu_s, 1e-9)
    done = result.rps * result.window_s
    if not latency.count or done <= 0:
        raise LabError("no RPC was completed")
    values = {"cpu_us": busy * 1e6 / done}
    if what == "rtt":
        return {
            "median": latency.percentile(50) / 1e3,
            "p99": latency.percentile(99) / 1e3,
            **values,
        }  # type: ignore[operator]
    if what == "rate":
        return {"rate": result.rps, "per_cpu_second": done / busy, **values}
    return {"goodput": result.goodput_bps, **values}


def ratios(what: str, series: list[Series]) -> dict[str, dict[str, dict[str, object]]]:
    """For each Homa configuration and metric: its ratio to the best TCP of its group, per round."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    for homa in series:
        if homa.config.transport != "homa" or not homa.rounds:
            continue
        rivals = [
            s
            for s in series
            if s.config.transport != "homa" and s.config.group == homa.config.group and s.rounds
        ]
        if not rivals:
            continue
        for metric in METRICS[what]:
            best = max if not metric.lower else min
            per_round = [
                values[metric.name] / best(rival.rounds[number][metric.name] for rival in rivals)
                for number, values in enumerate(homa.rounds)
            ]
            found.setdefault(homa.config.key, {})[f"{metric.name}_to_best_tcp"] = spread(per_round)
    return found


def measure_once(
    what: str, config: Config, pair: tuple[Host, Host], port: int, seconds: float
) -> dict[str, float]:
    """Run one configuration once."""
    client, server = pair
    program = str(homa_bench())
    cores = sorted(os.sched_getaffinity(0))
    pins = (
        [[], []] if config.cores is None else [["--pin", str(cores[core])] for core in config.cores]
    )
    common = ["--transport", config.transport, *config.options]
    jobs = [
        Job(
            "server",
            [program, "server", "--bind", f"{server.address}:{port}", *common, *pins[1], "--quiet"],
            server,
            background=True,
            urgent=True,
        ),
        Job(
            "client",
            [
                program,
                "client",
                "--peer",
                f"{server.address}:{port}",
                "--mode",
                what,
                *common,
                *pins[0],
                "--warmup",
                str(WARMUP_S),
                "--duration",
                str(seconds),
                "--json",
                "{json}",
                "--quiet",
            ],
            client,
            urgent=True,
        ),
    ]
    found, _ = measure_again(lambda: run_jobs(jobs, seconds + 30))
    return extract(what, found[1])


def measure(what: str, rounds: int, seconds: float) -> tuple[list[Series], dict[str, object]]:
    """All configurations in `rounds` rounds. One that cannot run is kept with its reason."""
    root = rootless.mode() == "root"
    series = [Series(config) for config in configurations(what, known_transports(), root)]
    if not series:
        raise LabError(
            "homa-bench knows no transport that can be compared; rebuild with ./homa build"
        )
    step_s = seconds + WARMUP_S + START_S
    with Steps(rounds * len(series) * step_s) as steps, Lab() as lab:
        pairs = {False: lab.pair("off", 9)}
        if any(one.config.offloads for one in series):
            pairs[True] = lab.pair("on", 10, offloads=True)
        tuned = tcp.tune([host for pair in pairs.values() for host in pair])
        port = FIRST_PORT
        for number in range(rounds):
            for one in series:
                port += 1
                if one.problem:
                    continue
                with steps(f"round {number + 1}: {one.config.label}", step_s) as step:
                    step.tick()
                    try:
                        one.rounds.append(
                            measure_once(
                                what, one.config, pairs[one.config.offloads], port, seconds
                            )
                        )
                    except LabError as error:
                        one.problem, one.rounds = str(error), []
    return series, tuned


def check(rounds: int, seconds: float) -> None:
    """Refuse what cannot be meant."""
    if not 1 <= rounds <= 1000:
        raise UsageError(f"--rounds {rounds} is out of range; use 1 to 1000 (5 is usual)")
    if not 0.05 <= seconds <= 600:
        raise UsageError(f"--seconds {seconds:g} is out of range; use 0.05 to 600")


def main(what: str, rounds: int, seconds: float, json_file: Path | None) -> None:
    """Measure, show, save."""
    here = machine.describe()
    if rootless.mode() == "loopback":
        raise LabError("bench needs network namespaces: run it as root, or allow user namespaces")
    series, tuned = measure(what, rounds, seconds)
    compared = ratios(what, series)
    out = console()
    out.print(here.one_line(), markup=False)
    if here.warning():
        out.print(here.warning(), markup=False)
    out.print(result_table(what, series, compared))
    out.print(
        f"Medians of {rounds} rounds and their spread; the ratio is to whichever TCP was best in "
        "the same round.\n"
        "CPU time is the whole machine's, interrupts included.",
        markup=False,
    )
    for one in series:
        if one.problem:
            out.print(f"{one.config.label}: not measured: {one.problem}", markup=False)
    if json_file:
        write_json(json_file, as_json(what, series, compared, here, tuned, seconds))
        out.print(f"Everything measured: {json_file}", markup=False)
    if not any(one.rounds for one in series):
        raise LabError("nothing could be measured; the reasons are above")


def as_json(
    what: str,
    series: list[Series],
    compared: dict,
    here: machine.Machine,
    tuned: dict[str, object],
    seconds: float,
) -> dict[str, object]:
    """The whole result as a document (docs/demo.md describes it)."""
    return {
        "what": what,
        "machine": here.as_json(),
        "seconds": seconds,
        "tcp": tuned,
        "configurations": {
            one.config.key: {
                "label": one.config.label,
                "options": list(one.config.options),
                "cores": one.config.cores,
                "problem": one.problem,
                **(
                    {m.name: spread(one.values(m.name)) for m in METRICS[what]}
                    if one.rounds
                    else {}
                ),
            }
            for one in series
        },
        "ratios": compared,
    }


def _show(metric: Metric, value: float) -> str:
    value /= metric.scale
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def result_table(what: str, series: list[Series], compared: dict) -> Table:
    """A row per configuration, best TCP first in each group, then Homa."""
    metrics = METRICS[what]
    first = metrics[0]
    columns = [
        column
        for metric in metrics
        for column in ([metric.title, "\nspread"] if metric is first else [metric.title])
    ]
    grid = table(TITLES[what], "", *columns, "to best\nTCP", "\nspread", tight=True)
    groups = list(dict.fromkeys(one.config.group for one in series))
    for group in groups:
        rows = [one for one in series if one.config.group == group and one.rounds]
        order = sorted(
            rows, key=lambda s: statistics.median(s.values(first.name)), reverse=not first.lower
        )
        order.sort(key=lambda s: s.config.transport == "homa")
        for number, one in enumerate(order):
            cells = [one.config.label]
            for metric in metrics:
                values = one.values(metric.name)
                cells.append(_show(metric, statistics.median(values)))
                if metric is first:
                    cells.append(f"{_show(metric, min(values))}–{_show(metric, max(values))}")
            ratio = compared.get(one.config.key, {}).get(f"{first.name}_to_best_tcp")
            if ratio:
                cells += [
                    format_ratio(ratio["median"]),
                    f"{format_ratio(ratio['min'])}–{format_ratio(ratio['max'])}",
                ]
            grid.add_row(*cells, end_section=number == len(order) - 1)
    return grid
