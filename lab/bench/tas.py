# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench tas`: TCP through homad beside the kernel's, row by row of the TAS paper's evaluation.

All ways of a point run in each round, one after the other, so that a slow moment of the machine hits all alike; a
ratio is taken round by round. Programs are the same binary everywhere (homa-flows), under homa-run where homad is.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich.table import Table

from lab import machine
from lab.bench import redis_load
from lab.bench.configs import Metric
from lab.bench.run import check as check_times
from lab.bench.run import spread
from lab.bench.tas_rows import KERNEL, ROWS, WAY_TEXTS, WAYS, Point, Row
from lab.console import Steps, console, table
from lab.errors import LabError, UsageError
from lab.net import rootless
from lab.net.homad import Effort, Homad, effort, homads, unmodified, unmodified_env
from lab.net.hosts import Host, Lab
from lab.net.runner import Job, measure_again, run_jobs
from lab.net.wire import Wire
from lab.output import write_json
from lab.paths import homa_flows

SAMPLES = 1000  # no percentile from fewer
START_S = 1.0  # what starting takes, for the progress bar
FIRST_PORT = 10000
RULES = """
[[tcp_rule]]
listen = [10000, 29999]
connect = [10000, 29999]
"""
# Limits of one user are no subject of these rows.
SETTINGS = f"""{RULES}
[tcp]
streams = 16384
connections = 131072
ports = 24576
"""
NAMES = ",".join(row.key for row in ROWS)


@dataclass
class Series:
    """A point's values on one way, by metric and round (None: it failed then)."""

    row: Row
    point: Point
    way: str
    rounds: list[dict[str, float] | None] = field(default_factory=list)
    problem: str = ""

    def values(self, name: str) -> list[float]:
        """This metric in all rounds that have it."""
        return [values[name] for values in self.rounds if values and name in values]

    @property
    def key(self) -> str:
        """Its name in the JSON."""
        return f"{self.row.key}.{self.point.key}.{self.way}"


class Bed:
    """Two hosts for one way, with daemons where it has some."""

    def __init__(
        self, stack: ExitStack, lab: Lab, way: str, row: Row, subnet: int, wire: bool
    ) -> None:
        self.wire = Wire(lab, f"w{subnet}", subnet) if wire else None
        self.pair: tuple[Host, Host] = (
            self.wire.pair if self.wire else lab.pair(f"t{subnet}", subnet, offloads=row.offloads)
        )
        self.daemons: list[Homad | None] = [None, None]
        for side, fast in enumerate(WAYS[way]):
            if fast:
                found = stack.enter_context(homads([self.pair[side]], settings=SETTINGS))
                self.daemons[side] = found[0]

    def command(self, side: int, argv: list[str]) -> list[str]:
        """The words that run a program on one side, unmodified."""
        return unmodified(argv) if self.daemons[side] else argv

    def env(self, side: int) -> dict[str, str]:
        """And its environment."""
        daemon = self.daemons[side]
        return unmodified_env(daemon.env) if daemon else {}

    def job(self, side: int, name: str, argv: list[str], background: bool = False) -> Job:
        """A program of one side."""
        return Job(name, self.command(side, argv), self.pair[side], background, env=self.env(side))


class Weight:
    """Processor time that the server and its daemon use while the client runs."""

    def __init__(self, daemon: Homad | None) -> None:
        self._pids = [daemon.pid] if daemon else []
        self._before: Effort | None = None
        self._now: Effort | None = None

    def started(self, pids: list[int]) -> None:
        """The server is the first job."""
        self._pids.append(pids[0])

    def tick(self) -> None:
        """Look; the last look before the end counts."""
        self._now = effort(*self._pids)
        self._before = self._before or self._now

    def seconds(self) -> float:
        """What it has used."""
        return self._now.cpu_s - self._before.cpu_s if self._now and self._before else 0.0


class Runner:
    """Runs points; beds are made when they are needed first."""

    def __init__(self, stack: ExitStack, lab: Lab, seconds: float) -> None:
        self._stack, self._lab, self._seconds = stack, lab, seconds
        self._beds: dict[tuple[str, bool, bool], Bed | LabError] = {}
        self._port = FIRST_PORT

    def bed(self, row: Row, point: Point, way: str) -> Bed:
        """Two hosts for it."""
        key = (way, row.offloads, point.loss is not None)
        if key not in self._beds:
            subnet = 20 + len(self._beds)
            wire = point.loss is not None
            try:
                self._beds[key] = Bed(self._stack, self._lab, way, row, subnet, wire)
            except LabError as error:
                self._beds[key] = error
        found = self._beds[key]
        if isinstance(found, LabError):
            raise found
        return found

    def run(self, row: Row, point: Point, way: str, peak: float) -> dict[str, float]:
        """One measurement; `peak` is the kernel's rate, for a point with half of it."""
        bed = self.bed(row, point, way)
        if bed.wire:
            bed.wire.lose(point.loss or 0)
        self._port += 4
        words = ["--duration", str(self._seconds), *point.words]
        if point.half:
            if not peak:
                raise LabError("the kernel's rate is not known")
            words += ["--rate", str(peak * point.share)]
        if point.redis:
            jobs = redis(bed, self._port, self._seconds)
        elif row.pipeline:
            jobs = pipeline(bed, self._port, words)
        else:
            jobs = server_and_client(bed, self._port, words, 0 if row.one_host else 1)
        weight = Weight(bed.daemons[0])
        found, _ = measure_again(
            lambda: run_jobs(jobs, self._seconds + 120, weight.tick, weight.started)
        )
        return extract(found[-1], weight.seconds())


def server_and_client(bed: Bed, port: int, words: list[str], side: int) -> list[Job]:
    """A server on the first host, a client on the host `side`, which reports."""
    flows, at = str(homa_flows()), [bed.pair[0].address, str(port), *words]
    return [
        bed.job(0, "server", [flows, "server", *at], background=True),
        bed.job(side, "client", [flows, "client", *at, "--json", "{json}"]),
    ]


def redis(bed: Bed, port: int, seconds: float) -> list[Job]:
    """redis-server and redis-benchmark on the first host, unmodified."""
    address = bed.pair[0].address
    server = ["redis-server", "--bind", address, "--port", str(port), "--save", ""]
    load = [sys.executable, redis_load.__file__, address, str(port), str(seconds), "{json}"]
    run = bed.command(0, [])
    return [
        bed.job(0, "redis-server", [*server, "--protected-mode", "no"], background=True),
        Job("redis-benchmark", [*load, *run], bed.pair[0], env=bed.env(0)),
    ]


def pipeline(bed: Bed, port: int, words: list[str]) -> list[Job]:
    """A source on the second host, a stage on each, and a sink on the first, which reports."""
    flows = str(homa_flows())
    first, second = (host.address for host in bed.pair)
    stages = [
        (0, "stage", first, port, ["--next", f"{second},{port + 1}"]),
        (1, "stage", second, port + 1, ["--next", f"{first},{port + 2}"]),
        (1, "source", first, port, []),
    ]
    jobs = [
        bed.job(side, role, [flows, role, at, str(where), *more, *words], background=True)
        for side, role, at, where, more in stages
    ]
    sink = [flows, "sink", first, str(port + 2), *words, "--json", "{json}"]
    return [*jobs, bed.job(0, "sink", sink)]


def checked(document: dict | None) -> dict:
    """What homa-flows reported, if it is whole; else LabError."""
    if not isinstance(document, dict) or document.get("schema") != "homa-flows/1":
        raise LabError("homa-flows wrote no result; rebuild everything with ./homa build")
    if document["wrong"] or document["failed"]:
        raise LabError(
            f"{document['wrong']} wrong answers, {document['failed']} failed connections"
        )
    if not document["bytes"]:
        raise LabError("nothing was carried")
    return document


def extract(reported: dict | None, server_s: float) -> dict[str, float]:
    """The metrics of what homa-flows or redis_load.py reported."""
    if isinstance(reported, dict) and reported.get("schema") == redis_load.SCHEMA:
        return {"rate": reported["rate"]}
    document = checked(reported)
    names = ("rate", "bits_per_s", "jain")
    values = {name: float(document[name]) for name in names}
    latency, interval = document["latency_ns"], document["interval_bytes"]
    values["samples"] = float(latency["count"])
    if latency["count"] >= SAMPLES:
        values |= {f"{name}_us": latency[name] / 1e3 for name in ("p50", "p90", "p99")}
    if document["all_requests"]:
        values["server_cpu_us"] = server_s * 1e6 / document["all_requests"]
    if interval["count"] >= SAMPLES and interval["p50"]:
        values["tail"] = interval["p99"] / interval["p50"]
    return values


def ratios(series: list[Series]) -> dict[str, dict[str, object]]:
    """Each way to the kernel's TCP at the same point, by "row.point.way.metric"."""
    kernel = {(one.row.key, one.point.key): one for one in series if one.way == KERNEL}
    found = {}
    for one in series:
        base = kernel.get((one.row.key, one.point.key))
        if one.way == KERNEL or not base:
            continue
        for metric in one.row.metrics:
            rounds = [
                mine[metric.name] / theirs[metric.name]
                for mine, theirs in zip(one.rounds, base.rounds, strict=True)
                if mine and theirs and metric.name in mine and theirs.get(metric.name)
            ]
            if rounds:
                found[f"{one.key}.{metric.name}"] = spread(rounds)
    return found


def kept(series: list[Series], row: str, metric: str, first: str) -> dict[str, dict[str, object]]:
    """What is left of `metric` at each point, to that at the point `first`, by way."""
    found = {}
    for one in series:
        if one.row.key != row or one.point.key == first:
            continue
        base = next(
            s for s in series if s.row is one.row and s.way == one.way and s.point.key == first
        )
        rounds = [
            mine[metric] / theirs[metric]
            for mine, theirs in zip(one.rounds, base.rounds, strict=True)
            if mine and theirs and theirs.get(metric)
        ]
        if rounds:
            found[one.key] = spread(rounds)
    return found


def to_peak(series: list[Series]) -> dict[str, dict[str, object]]:
    """The rate with the most connections to the highest rate with any number, by way and round."""
    found = {}
    for way in WAYS:
        mine = [one for one in series if one.row.key == "connections" and one.way == way]
        rounds = []
        for number in range(len(mine[0].rounds) if mine else 0):
            rates = [done["rate"] for one in mine if (done := one.rounds[number])]
            if len(rates) == len(mine) > 1:
                rounds.append(rates[-1] / max(rates))
        if rounds:
            found[way] = spread(rounds)
    return found


def pairings(series: list[Series], row: str, metric: str) -> dict[str, dict[str, object]]:
    """The largest to the smallest value of all ways at a point, by "row.point.metric", of the rounds that have all."""
    found = {}
    for point in dict.fromkeys(one.point for one in series if one.row.key == row):
        ways = [one.rounds for one in series if one.row.key == row and one.point == point]
        rounds = []
        for each in zip(*ways, strict=True):
            values = [done[metric] for done in each if done and done.get(metric)]
            if len(values) == len(WAYS):
                rounds.append(max(values) / min(values))
        if rounds:
            found[f"{row}.{point.key}.{metric}"] = spread(rounds)
    return found


def measure(rows: Iterable[Row], points: list[str], rounds: int, seconds: float) -> list[Series]:
    """All of it. What fails in a round is left out there, with the reason."""
    series = [
        Series(row, point, way)
        for row in rows
        for point in row.points
        if not points or point.key in points
        for way in row.ways
    ]
    step_s = seconds + START_S
    with Steps(rounds * len(series) * step_s) as steps, ExitStack() as stack:
        runner = Runner(stack, stack.enter_context(Lab()), seconds)
        for number in range(rounds):
            peak = 0.0
            for one in series:
                label = (
                    f"round {number + 1}: {one.row.key}: {one.point.label}, {WAY_TEXTS[one.way]}"
                )
                with steps(label, step_s) as step:
                    step.tick()
                    try:
                        values = runner.run(one.row, one.point, one.way, peak)
                    except LabError as error:
                        one.rounds.append(None)
                        one.problem = f"round {number + 1}: {error}"
                        continue
                one.rounds.append(values)
                if one.way == KERNEL and not one.point.half:
                    peak = values["rate"]
    return series


def check(names: str, points: str, rounds: int, seconds: float) -> tuple[list[Row], list[str]]:
    """The rows and points that are meant; UsageError if something cannot be."""
    known = {row.key: row for row in ROWS}
    chosen = [name for name in names.split(",") if name] or list(known)
    for name in chosen:
        if name not in known:
            raise UsageError(f"unknown row '{name}'; use some of {NAMES}")
    wanted = [name for name in points.split(",") if name]
    there = {point.key for name in chosen for point in known[name].points}
    for name in wanted:
        if name not in there:
            raise UsageError(f"unknown point '{name}'; these rows have {', '.join(sorted(there))}")
    check_times(rounds, seconds)
    return [row for row in ROWS if row.key in chosen], wanted


def start() -> machine.Machine:
    """The machine as it is before; LabError if nothing can be measured here."""
    here = machine.describe()
    if rootless.mode() != "root":
        raise LabError("bench tas starts daemons in network namespaces: run it as root")
    homa_flows()
    return here


def head(here: machine.Machine) -> None:
    """What stands above the tables."""
    out = console()
    out.print(here.one_line(), markup=False)
    if here.warning():
        out.print(here.warning(), markup=False)


class Measured(Protocol):
    """A point's rounds, and what went wrong in one of them."""

    key: str
    rounds: list[dict[str, float] | None]
    problem: str


def finish(series: Sequence[Measured], json_file: Path | None, document: dict[str, object]) -> None:
    """What stands below the tables, and the document; LabError if no round of any point has
    values."""
    out = console()
    for one in series:
        if one.problem:
            out.print(f"{one.key}: {one.problem}", markup=False)
    if json_file:
        write_json(json_file, document)
        out.print(f"Everything measured: {json_file}", markup=False)
    if not any(values for one in series for values in one.rounds):
        raise LabError("nothing could be measured; the reasons are above")


def main(
    rows: list[Row], points: list[str], rounds: int, seconds: float, json_file: Path | None
) -> None:
    """Measure, show, save."""
    here = start()
    series = measure(rows, points, rounds, seconds)
    out = console()
    head(here)
    found = ratios(series)
    for row in rows:
        out.print(row_table(row, series, found))
        out.print(f"Published: {row.paper}. Here: {row.differs}.", markup=False)
    for key, ratio in pairings(series, "interop", "bits_per_s").items():
        text = f"{key}: the largest to the smallest of all pairs {ratio['median']:.2f}"
        out.print(f"{text} ({ratio['min']:.2f}–{ratio['max']:.2f})", markup=False)
    out.print(
        f"\nMedians of {rounds} rounds; ratios to the kernel's TCP with their spread.", markup=False
    )
    finish(series, json_file, as_json(series, found, here, seconds))


def as_json(
    series: list[Series], found: dict, here: machine.Machine, seconds: float
) -> dict[str, object]:
    """The whole result as a document."""
    names = {name for one in series for values in one.rounds if values for name in values}
    return {
        "what": "tas",
        "machine": here.as_json(),
        "seconds": seconds,
        "cases": {
            one.key: {
                "problem": one.problem,
                **{name: spread(one.values(name)) for name in sorted(names) if one.values(name)},
            }
            for one in series
        },
        "ratios": nested(found),
        "kept": nested(kept(series, "loss", "bits_per_s", "0")),
        "to_peak": to_peak(series),
        "pairings": nested(pairings(series, "interop", "bits_per_s")),
    }


def nested(flat: dict[str, dict[str, object]]) -> dict[str, object]:
    """ "a.b.c" as dicts in dicts."""
    tree: dict = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        place = tree
        for word in path:
            place = place.setdefault(word, {})
        place[last] = value
    return tree


def _show(metric: Metric, value: float) -> str:
    value /= metric.scale
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def row_table(row: Row, series: list[Series], found: dict) -> Table:
    """A line for each point and way; the first metric with its ratio."""
    first = row.metrics[0]
    titles = [metric.title for metric in row.metrics]
    grid = table(row.title, "", "", titles[0], "to the\nkernel's", "spread", *titles[1:], left=2)
    for one in series:
        if one.row is not row:
            continue
        values = one.values(first.name)
        ratio = found.get(f"{one.key}.{first.name}")
        cells = [one.point.label if one.way == row.ways[0] else "", WAY_TEXTS[one.way]]
        cells.append(_show(first, statistics.median(values)) if values else "–")
        cells.append(f"{ratio['median']:.2f}" if ratio else "")
        cells.append(f"{ratio['min']:.2f}–{ratio['max']:.2f}" if ratio else "")
        for metric in row.metrics[1:]:
            values = one.values(metric.name)
            cells.append(_show(metric, statistics.median(values)) if values else "–")
        grid.add_row(*cells)
    return grid
