# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench tas beside`: short RPCs of Homa while one TCP connection takes all that it can get.

RPCs of 100 bytes with responses of 100 bytes are due at random times, RATE a second, from the second
of two hosts to the first, always between the same two homads. Beside them a stream goes from the
first host to the second, so that it shares its way with the responses: through the same two homads,
or over the kernel's TCP next to them. All of that runs in each round, alone and together.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from lab import machine
from lab.bench import results
from lab.bench.run import check as check_times
from lab.bench.run import spread
from lab.bench.tas import RULES, SAMPLES, finish, head, nested, start
from lab.console import Steps, console, table
from lab.errors import LabError, UsageError
from lab.net import tcp
from lab.net.homad import Homad, homads, unmodified, unmodified_env
from lab.net.hosts import Host, Lab
from lab.net.runner import Job, measure_again, run_jobs
from lab.net.switch import build_switch
from lab.paths import homa_bench, homa_flows

RATE = 2000  # RPCs a second
SIZE = 100
PORT = 10001
_OPENS_S = 1.5  # from starting the programs to the window
_WARMUP_S = 0.5


@dataclass(frozen=True)
class Link:
    """`mbps`: what its ports let through; 0: a veth pair without a limit."""

    key: str
    text: str
    mbps: int = 0


@dataclass(frozen=True)
class Case:
    """What runs at the same time: RPCs, a stream of homad's or of the kernel's."""

    key: str
    text: str
    rpcs: bool = True
    stream: str = ""


LINKS = (
    Link("veth", "a veth pair, no limit but the processors"),
    Link("1000", "a switch whose ports have 1 Gbit/s, which homad knows", 1000),
)
ALONE = "alone"
CASES = (
    Case(ALONE, "RPCs alone"),
    Case("stream-homad", "a stream alone, by homad", False, "homad"),
    Case("stream-kernel", "a stream alone, the kernel's TCP", False, "kernel"),
    Case("homad", "RPCs beside a stream by homad", True, "homad"),
    Case("kernel", "RPCs beside a stream of the kernel's TCP", True, "kernel"),
)


@dataclass
class Series:
    """A case's values on one link by round (None: it failed then)."""

    link: Link
    case: Case
    rounds: list[dict[str, float] | None] = field(default_factory=list)
    problem: str = ""

    @property
    def key(self) -> str:
        """Its name in the JSON."""
        return f"{self.link.key}.{self.case.key}"

    def values(self, name: str) -> list[float]:
        """This value in all rounds that have it."""
        return [values[name] for values in self.rounds if values and name in values]


class Bed:
    """Two hosts on a link, each with a homad."""

    def __init__(self, stack: ExitStack, lab: Lab, link: Link) -> None:
        settings = RULES
        if link.mbps:
            hosts = build_switch(lab, 2, link.mbps * 10**6).hosts
            tcp.tune(hosts)
            self.pair: tuple[Host, Host] = (hosts[0], hosts[1])
            settings += f"[network]\nlink_mbps = {link.mbps}\n"
        else:
            self.pair = lab.pair("b", 40, offloads=True)
        self.daemons: list[Homad] = stack.enter_context(homads(self.pair, settings=settings))
        self._port = PORT

    def run(self, case: Case, seconds: float) -> dict[str, float]:
        """One measurement."""
        self._port += 1
        opens = time.monotonic() + _OPENS_S
        jobs = self._rpcs(opens, seconds) if case.rpcs else []
        jobs += self._stream(case, opens, seconds) if case.stream else []
        found, _ = measure_again(lambda: run_jobs(jobs, seconds + 60))
        reports = [one for one in found if one]
        return extract(
            next((one for one in reports if one.get("schema") == results.SCHEMA), None),
            next((one for one in reports if one.get("schema") == "homa-flows/1"), None),
            case,
        )

    def _rpcs(self, opens: float, seconds: float) -> list[Job]:
        at = f"{self.pair[0].address}:{self._port}"
        program = [str(homa_bench())]
        common = ["--transport", "homa", "--via", "service"]
        serve = [*program, "server", "--bind", at, *common]
        ask = [*program, "client", "--peer", at, *common, "--size", str(SIZE), "--lead", "0"]
        ask += ["--rate", str(RATE), "--start-at", f"mono:{opens - _WARMUP_S}"]
        ask += ["--warmup", str(_WARMUP_S), "--duration", str(seconds), "--json", "{json}"]
        env = [daemon.env for daemon in self.daemons]
        return [
            Job("RPC server", serve, self.pair[0], background=True, env=env[0]),
            Job("RPC client", ask, self.pair[1], env=env[1]),
        ]

    def _stream(self, case: Case, opens: float, seconds: float) -> list[Job]:
        by_homad = case.stream == "homad"
        at = [self.pair[0].address, str(self._port), "--mode", "receive", "--size", "65536"]
        times = ["--warmup", "0", "--measure-at", f"{opens:.6f}", "--duration", str(seconds)]
        flows = str(homa_flows())
        words = (
            [flows, "server", *at],
            [flows, "client", *at, *times, "--json", "{json}"],
        )
        return [
            Job(
                f"stream {words[side][1]}",
                unmodified(words[side]) if by_homad else words[side],
                self.pair[side],
                background=side == 0,
                env=unmodified_env(self.daemons[side].env) if by_homad else {},
            )
            for side in (0, 1)
        ]


def extract(rpcs: dict | None, stream: dict | None, case: Case) -> dict[str, float]:
    """What homa-bench and homa-flows reported."""
    values = {}
    if case.rpcs:
        load = results.parse_load(rpcs)
        latency = load.classes[0].latency
        if load.failed:
            raise LabError(f"{load.failed} RPCs failed")
        if load.completed < SAMPLES:
            raise LabError(f"only {load.completed} RPCs, {SAMPLES} are needed")
        values = {f"p{n}_us": latency.percentile(n) / 1e3 for n in (50, 99)}
        values["samples"] = float(load.completed)
    if case.stream:
        if not stream or stream["failed"] or not stream["bytes"]:
            raise LabError("the stream carried nothing")
        values["bits_per_s"] = float(stream["bits_per_s"])
    return values


def to_alone(series: Sequence[Series]) -> dict[str, dict[str, object]]:
    """By "link.way": "p99" and "p50" beside a stream to those alone, and the share of its goodput
    that the stream has "lost", round by round."""
    found: dict[str, dict[str, object]] = {}
    by_key = {(one.link.key, one.case.key): one for one in series}
    for link in dict.fromkeys(one.link for one in series):
        for way in ("homad", "kernel"):
            beside = by_key[link.key, way]
            ratios = {
                "p99": _ratios(beside, by_key[link.key, ALONE], "p99_us"),
                "p50": _ratios(beside, by_key[link.key, ALONE], "p50_us"),
                "lost": [
                    1 - kept
                    for kept in _ratios(beside, by_key[link.key, f"stream-{way}"], "bits_per_s")
                ],
            }
            found[f"{link.key}.{way}"] = {
                name: spread(values) for name, values in ratios.items() if values
            }
    return found


def _ratios(over: Series, under: Series, name: str) -> list[float]:
    return [
        mine[name] / theirs[name]
        for mine, theirs in zip(over.rounds, under.rounds, strict=True)
        if mine and theirs
    ]


def measure(links: Sequence[Link], rounds: int, seconds: float) -> list[Series]:
    """All of it. What fails in a round is left out there, with the reason."""
    series = [Series(link, case) for link in links for case in CASES]
    step_s = seconds + _OPENS_S + 0.5
    with Steps(rounds * len(series) * step_s) as steps:
        for link in links:
            mine = [one for one in series if one.link is link]
            with ExitStack() as stack:
                bed = Bed(stack, stack.enter_context(Lab()), link)
                for number in range(rounds):
                    for one in mine:
                        label = f"round {number + 1}: {link.key}: {one.case.text}"
                        with steps(label, step_s) as step:
                            step.tick()
                            _run(bed, one, number, seconds)
    return series


def _run(bed: Bed, one: Series, number: int, seconds: float) -> None:
    try:
        one.rounds.append(bed.run(one.case, seconds))
    except LabError as error:
        one.rounds.append(None)
        one.problem = f"round {number + 1}: {error}"


def check(points: str, rounds: int, seconds: float) -> list[Link]:
    """The links that are meant; UsageError if something cannot be."""
    known = {link.key: link for link in LINKS}
    names = [name for name in points.split(",") if name] or list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown point '{name}'; beside has {', '.join(known)}")
    check_times(rounds, seconds)
    if RATE * seconds < 1.2 * SAMPLES:
        raise UsageError(f"--seconds {seconds:g}: beside needs {1.2 * SAMPLES / RATE:g} or more")
    return [known[name] for name in names]


def main(links: list[Link], rounds: int, seconds: float, json_file: Path | None) -> None:
    """Measure, show, save."""
    here = start()
    series = measure(links, rounds, seconds)
    found = to_alone(series)
    out = console()
    head(here)
    for link in links:
        out.print(link_table(link, series, found))
    out.print(
        f"Medians of {rounds} rounds; lost: of the stream's rate alone, by the RPCs.", markup=False
    )
    finish(series, json_file, as_json(series, found, here, seconds))


def as_json(
    series: Sequence[Series], found: dict, here: machine.Machine, seconds: float
) -> dict[str, object]:
    """The whole result as a document."""
    names = ("p50_us", "p99_us", "samples", "bits_per_s")
    return {
        "what": "tas-beside",
        "machine": here.as_json(),
        "seconds": seconds,
        "rpcs_per_s": RATE,
        "size": SIZE,
        "cases": {
            one.key: {
                "problem": one.problem,
                **{name: spread(one.values(name)) for name in names if one.values(name)},
            }
            for one in series
        },
        "ratios": nested(found),
    }


def link_table(link: Link, series: Sequence[Series], found: dict) -> object:
    """A line for each case."""
    grid = table(
        f"{SIZE} B RPCs, {RATE} a second, and one TCP connection: {link.text}",
        *("", "median\nµs", "P99\nµs", "P99 to\nalone", "spread", "Gbit/s", "lost"),
        tight=True,
    )
    for one in series:
        if one.link is not link:
            continue
        cells = [one.case.text]
        for name in ("p50_us", "p99_us"):
            values = one.values(name)
            cells.append(f"{statistics.median(values):,.0f}" if values else "")
        ratios = found.get(one.key, {})
        cells += _with_spread(ratios.get("p99"))
        rates = one.values("bits_per_s")
        cells.append(f"{statistics.median(rates) / 1e9:.2f}" if rates else "")
        cells += _with_spread(ratios.get("lost"))[:1]
        grid.add_row(*cells)
    return grid


def _with_spread(found: dict | None) -> list[str]:
    if not found:
        return ["", ""]
    return [f"{found['median']:.2f}", f"{found['min']:.2f}–{found['max']:.2f}"]
