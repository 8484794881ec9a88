# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench tas flood`: what SYNs of strangers cost those who are connected.

Echoes of 64 bytes on 64 connections between two homads, in each round alone and beside 10,000 SYNs a second with
addresses of others to the same port, sent from the second host over the same device. What is sent, and answered by
a SYN cookie, takes time of the same two processors; the programs that send it are part of the cost.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from lab import machine
from lab.bench import syn_flood
from lab.bench.run import check as check_times
from lab.bench.run import spread
from lab.bench.tas import RULES, checked, finish, head, start
from lab.console import Steps, console, table
from lab.errors import LabError
from lab.net.homad import Homad, homads, unmodified, unmodified_env
from lab.net.hosts import Host, Lab, run
from lab.net.runner import Job, measure_again, run_jobs
from lab.paths import homa_flows

RATE = 10_000  # SYNs a second
CONNECTIONS = 64
PORT = 10001
FEW = 0.95  # of the SYNs that were due: with fewer the round does not count
CALM, FLOOD = "calm", "flood"
TEXTS = {CALM: "nobody else", FLOOD: f"{RATE:,} SYNs a second"}
_OPENS_S = 2.5  # from starting the programs to the window; the SYNs are made in that time
_EDGE_S = 0.2  # for which the flood begins before the window, and ends after it


@dataclass
class Series:
    """A case's values by round (None: it failed then)."""

    key: str
    rounds: list[dict[str, float] | None] = field(default_factory=list)
    problem: str = ""

    def values(self, name: str) -> list[float]:
        """This metric in all rounds that have it."""
        return [values[name] for values in self.rounds if values and name in values]


class Bed:
    """Two hosts with a homad each; the first one has a route to the strangers."""

    def __init__(self, stack: ExitStack, lab: Lab) -> None:
        self.pair: tuple[Host, Host] = lab.pair("f", 41, offloads=True)
        server, client = self.pair
        run(server.command(["ip", "route", "add", syn_flood.STRANGERS, "via", client.address]))
        self.daemons: list[Homad] = stack.enter_context(homads(self.pair, settings=RULES))
        self._port = PORT

    def run(self, case: str, seconds: float) -> dict[str, float]:
        """One measurement."""
        self._port += 1
        before = resident(self.daemons[0].pid)
        found, _ = measure_again(lambda: run_jobs(self._jobs(case, seconds), seconds + 60))
        values = extract([one for one in found if one], case)
        after = resident(self.daemons[0].pid)
        return values | {"rss_before": before, "rss_after": after, "rss_growth": after - before}

    def _jobs(self, case: str, seconds: float) -> list[Job]:
        opens = time.monotonic() + _OPENS_S
        flows, at = str(homa_flows()), [self.pair[0].address, str(self._port)]
        at += ["--connections", str(CONNECTIONS)]
        times = ["--warmup", "0", "--measure-at", f"{opens:.6f}", "--duration", str(seconds)]
        words = ([flows, "server", *at], [flows, "client", *at, *times, "--json", "{json}"])
        jobs = [
            Job(
                words[side][1],
                unmodified(words[side]),
                self.pair[side],
                background=side == 0,
                env=unmodified_env(self.daemons[side].env),
            )
            for side in (0, 1)
        ]
        if case == FLOOD:
            span = [str(opens - _EDGE_S), str(opens + seconds + _EDGE_S)]
            argv = [sys.executable, syn_flood.__file__, *at[:2], str(RATE), *span, "{json}"]
            jobs.append(Job("flood", argv, self.pair[1]))
        return jobs


def resident(pid: int) -> float:
    """Bytes of memory that a process has (RSS)."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024
    raise LabError(f"process {pid} says nothing of its memory")


def extract(reports: list[dict], case: str) -> dict[str, float]:
    """What homa-flows and the flood reported; LabError if too few SYNs were sent."""
    by_schema = {one.get("schema"): one for one in reports}
    echo = checked(by_schema.get("homa-flows/1"))
    values = {"rate": float(echo["rate"])}
    if latency := echo["latency_ns"]:
        values |= {f"{name}_us": latency[name] / 1e3 for name in ("p50", "p99") if name in latency}
    if case == FLOOD:
        flood = by_schema.get(syn_flood.SCHEMA)
        if not flood or flood["sent"] < FEW * RATE * flood["seconds"]:
            raise LabError(f"{flood['sent'] if flood else 0} SYNs were sent, which are too few")
        values["syns_per_s"] = flood["sent"] / flood["seconds"]
    return values


def to_calm(series: Sequence[Series]) -> dict[str, dict[str, object]]:
    """The rate beside the flood to that without it, round by round."""
    calm, flood = (next(one for one in series if one.key == key) for key in (CALM, FLOOD))
    ratios = [
        mine["rate"] / theirs["rate"]
        for mine, theirs in zip(flood.rounds, calm.rounds, strict=True)
        if mine and theirs
    ]
    return {"rate": spread(ratios)} if ratios else {}


def measure(rounds: int, seconds: float) -> list[Series]:
    """All of it. What fails in a round is left out there, with the reason."""
    series = [Series(CALM), Series(FLOOD)]
    step_s = seconds + _OPENS_S + 0.5
    with Steps(rounds * len(series) * step_s) as steps, ExitStack() as stack:
        bed = Bed(stack, stack.enter_context(Lab()))
        for number in range(rounds):
            for one in series:
                with steps(f"round {number + 1}: {TEXTS[one.key]}", step_s) as step:
                    step.tick()
                    try:
                        one.rounds.append(bed.run(one.key, seconds))
                    except LabError as error:
                        one.rounds.append(None)
                        one.problem = f"round {number + 1}: {error}"
    return series


def main(rounds: int, seconds: float, json_file: Path | None) -> None:
    """Measure, show, save."""
    check_times(rounds, seconds)
    here = start()
    series = measure(rounds, seconds)
    found = to_calm(series)
    head(here)
    console().print(flood_table(series, found))
    console().print(
        f"Medians of {rounds} rounds. Memory: of the server's homad, before and after a run.",
        markup=False,
    )
    finish(series, json_file, as_json(series, found, here, seconds))


def as_json(
    series: Sequence[Series], found: dict, here: machine.Machine, seconds: float
) -> dict[str, object]:
    """The whole result as a document."""
    names = {name for one in series for values in one.rounds if values for name in values}
    return {
        "what": "tas-flood",
        "machine": here.as_json(),
        "seconds": seconds,
        "syns_per_s": RATE,
        "connections": CONNECTIONS,
        "cases": {
            one.key: {
                "problem": one.problem,
                **{name: spread(one.values(name)) for name in sorted(names) if one.values(name)},
            }
            for one in series
        },
        "ratios": {FLOOD: found},
    }


def flood_table(series: Sequence[Series], found: dict) -> object:
    """A line for each case."""
    grid = table(
        f"echo of 64 B on {CONNECTIONS} connections beside a SYN flood",
        *("", "1000\nrequests/s", "to\ncalm", "spread", "P99\nµs", "MB\nbefore", "MB\nafter"),
        tight=True,
    )
    for one in series:
        cells = [TEXTS[one.key]]
        ratio = found.get("rate") if one.key == FLOOD else None
        cells.append(_median(one.values("rate"), 1e3))
        cells.append(f"{ratio['median']:.2f}" if ratio else "")
        cells.append(f"{ratio['min']:.2f}–{ratio['max']:.2f}" if ratio else "")
        cells.append(_median(one.values("p99_us"), 1))
        cells += [_median(one.values(f"rss_{name}"), 1e6) for name in ("before", "after")]
        grid.add_row(*cells)
    return grid


def _median(values: list[float], scale: float) -> str:
    return f"{statistics.median(values) / scale:,.1f}" if values else "–"
