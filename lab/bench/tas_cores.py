# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench tas cores`: homad's threads come and go with the load.

That is what Figures 14 and 15 of TAS (EuroSys 2019) show. Five clients of key-value stores on one host
begin one after the other, a period of --seconds apart, and end in the reverse order, so the load has
nine levels: 1, 2, 3, 4, 5, 4, 3, 2, 1 clients. Each asks at random times, at a fixed rate. With all five
that is 80 % of what they got when nothing limited them. The stores are five programs, because a program
is at home at one of homad's threads.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from lab import machine
from lab.bench.cores_line import CLIENTS, LEVELS, PART_S, Answers, Threads
from lab.bench.run import check as check_times
from lab.bench.run import spread
from lab.bench.tas import RULES, checked, finish, head, nested, start
from lab.console import Steps, console, table
from lab.errors import LabError, UsageError
from lab.net.homad import Homad, homads, unmodified, unmodified_env
from lab.net.hosts import Host, Lab
from lab.net.runner import Job, measure_again, run_jobs
from lab.paths import homa_flows

CONNECTIONS = 20  # of each client
DEPTH = 64
SHARE = 0.8  # of the highest rate, with all clients
PORT = 10001
PEAK_S = 1.0
STARTS_S = 1.0  # from starting a client to its first request
SHORTEST_S = 0.5
_MOST_THREADS = 16


@dataclass(frozen=True)
class Way:
    """What carries the bytes; `settings` are the server's homad's (None: there is none)."""

    key: str
    text: str
    settings: Callable[[int], str] | None


def _dedicated(cores: int, scale: bool) -> str:
    cpus = ", ".join(map(str, range(cores)))
    return f'[threads]\nmode = "dedicated"\ncores = [{cpus}]\nscale = {str(scale).lower()}\n'


SCALED = "scaled"
WAYS = (
    Way(SCALED, "threads come and go", lambda cores: _dedicated(cores, True)),
    Way("one", "one thread", lambda cores: _dedicated(1, False)),
    Way("all", "all threads, always", lambda cores: _dedicated(cores, False)),
    Way("kernel", "the kernel's TCP", None),
)
PUBLISHED = (
    "Published (Figures 14, 15): 1 core, 3 with one client, up to 9 with five, and back; latency "
    "rises by about 15 µs or 30 % while cores come. Here: as many threads as there are processors, "
    "which the stores, the clients and a second homad share with them; the paper's clients had "
    "machines of their own."
)


def threads_here() -> int:
    """The most threads that homad may have on this machine."""
    return min(os.cpu_count() or 1, _MOST_THREADS)


@dataclass
class Series:
    """A way's rounds: values by name (None: it failed then)."""

    way: Way
    rounds: list[dict[str, float] | None] = field(default_factory=list)
    lines: list[dict[str, object]] = field(default_factory=list)
    problem: str = ""

    @property
    def key(self) -> str:
        """Its name in the JSON."""
        return self.way.key

    def values(self, name: str) -> list[float]:
        """This value in all rounds that have it."""
        return [values[name] for values in self.rounds if values and name in values]


class Bed:
    """Two hosts for one way; the stores are on the first."""

    def __init__(self, stack: ExitStack, lab: Lab, way: Way, subnet: int) -> None:
        cores = threads_here()
        self.pair: tuple[Host, Host] = lab.pair(f"c{subnet}", subnet, offloads=True, queues=cores)
        self.daemons: list[Homad | None] = [None, None]
        if way.settings:
            of_side = (RULES + way.settings(cores), RULES)
            for side, settings in enumerate(of_side):
                found = stack.enter_context(homads([self.pair[side]], settings=settings))
                self.daemons[side] = found[0]
        self._port = PORT

    def _job(self, side: int, name: str, argv: list[str], after: float = -1) -> Job:
        daemon = self.daemons[side]
        words = unmodified(argv) if daemon else argv
        if after > 0:
            words = ["sh", "-c", 'sleep "$0"; exec "$@"', f"{after:g}", *words]
        env = unmodified_env(daemon.env) if daemon else {}
        return Job(name, words, self.pair[side], background=after < 0, env=env)

    def _run(self, clients: Sequence[tuple[float, list[str]]], tick: Callable[[], None]) -> list:
        """Stores, and for each of `clients` the time after which it begins, and its words."""
        flows, address = str(homa_flows()), self.pair[0].address
        self._port += CLIENTS
        jobs = []
        for number in range(len(clients)):
            at = [address, str(self._port + number), "--mode", "kv"]
            jobs.append(self._job(0, f"store {number}", [flows, "server", *at]))
        for number, (after, words) in enumerate(clients):
            at = [address, str(self._port + number), "--mode", "kv"]
            ask = [flows, "client", *at, "--connections", str(CONNECTIONS), "--warmup", "0", *words]
            ask += ["--seed", str(number + 1), "--json", "{json}"]
            jobs.append(self._job(1, f"client {number}", ask, after))
        found, note = measure_again(lambda: run_jobs(jobs, 600 + 10 * CLIENTS, tick))
        if note:
            raise LabError(note)
        return [document for document in found if document]

    def peak(self) -> float:
        """Requests per second of all clients together when each asks again at once."""
        words = ["--duration", str(PEAK_S)]
        found = self._run([(0.0, words)] * CLIENTS, lambda: None)
        return sum(checked(document)["rate"] for document in found)

    def line(self, rate: float, seconds: float, step: Callable[[], None]) -> Line:
        """The whole time line, with `rate` requests per second for each client."""
        threads = Threads()

        def tick() -> None:
            step()
            daemon = self.daemons[0]
            if daemon:
                active = [one["active"] for one in daemon.snapshot()["threads"]]
                threads.saw(time.monotonic(), sum(active))

        clients = []
        opens = time.monotonic() + STARTS_S
        for number in range(CLIENTS):
            lasts = (len(LEVELS) - 2 * number) * seconds
            words = ["--duration", f"{lasts:g}", "--parts", str(PART_S), "--rate", f"{rate:.1f}"]
            words += ["--depth", str(DEPTH), "--measure-at", f"{opens + number * seconds:.6f}"]
            clients.append((number * seconds, words))
        found = self._run(clients, tick)
        return Line(Answers.of(found), threads)


@dataclass(frozen=True)
class Line:
    """What was seen in one round."""

    answers: Answers
    threads: Threads

    def values(self, rate: float, seconds: float) -> dict[str, float]:
        """By "level.name", and of the moments at which a thread came."""
        values: dict[str, float] = {}
        for number, level in enumerate(self.answers.levels(seconds, self.threads)):
            offered = LEVELS[number] * rate
            values[f"{number}.offered"] = offered
            values |= {f"{number}.{name}": value for name, value in level.items()}
        came = [spike for at in self.threads.rises() if (spike := self.answers.spike(at))]
        values["rises"] = float(len(self.threads.rises()))
        if came:
            values["spike"] = statistics.median(one.ratio for one in came)
            values["spike_us"] = statistics.median(one.more_us for one in came)
            values["highest_spike"] = max(one.ratio for one in came)
            values["spikes"] = float(len(came))
        return values

    def as_json(self) -> dict[str, object]:
        """For a plot: seconds from the first client's beginning on."""
        begin = self.answers.begin
        return {
            "threads": [[round(at - begin, 3), count] for at, count in self.threads.seen],
            "parts": self.answers.parts_json(),
        }


def measure(ways: Sequence[Way], rounds: int, seconds: float) -> list[Series]:
    """All of it. What fails in a round is left out there, with the reason."""
    series = [Series(way) for way in ways]
    step_s = len(LEVELS) * seconds + STARTS_S
    with Steps(rounds * (len(series) * step_s + PEAK_S)) as steps, ExitStack() as stack:
        lab = stack.enter_context(Lab())
        for number in range(rounds):
            rate = 0.0
            for index, one in enumerate(series):
                # Threads of a homad that has nothing to do spin, so each way has its own time.
                with ExitStack() as daemons:
                    bed = Bed(daemons, lab, one.way, 50 + number * len(series) + index)
                    if not rate:
                        with steps(f"round {number + 1}: the highest rate, {one.way.text}", PEAK_S):
                            rate = SHARE * bed.peak() / CLIENTS
                    with steps(f"round {number + 1}: {one.way.text}", step_s) as step:
                        _run(bed, one, rate, seconds, step.tick)
    return series


def _run(bed: Bed, one: Series, rate: float, seconds: float, tick: Callable[[], None]) -> None:
    try:
        line = bed.line(rate, seconds, tick)
    except LabError as error:
        one.problem = f"round {len(one.rounds) + 1}: {error}"
        one.rounds.append(None)
        return
    one.rounds.append(line.values(rate, seconds))
    one.lines.append(line.as_json())


def check(points: str, rounds: int, seconds: float) -> list[Way]:
    """The ways that are meant; UsageError if something cannot be."""
    known = {way.key: way for way in WAYS}
    names = [name for name in points.split(",") if name] or list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown point '{name}'; cores has {', '.join(known)}")
    check_times(rounds, seconds)
    if not SHORTEST_S <= seconds <= 10:
        raise UsageError(f"--seconds {seconds:g}: cores needs {SHORTEST_S:g} to 10 for each level")
    return [known[name] for name in names]


def main(ways: list[Way], rounds: int, seconds: float, json_file: Path | None) -> None:
    """Measure, show, save."""
    here = start()
    series = measure(ways, rounds, seconds)
    out = console()
    head(here)
    for one in series:
        out.print(way_table(one, seconds))
        spike = one.values("spike")
        if spike:
            out.print(
                f"A thread came {statistics.median(one.values('rises')):.0f} times; in a tenth of a "
                f"second around that the median of the requests was {statistics.median(spike):.2f} "
                f"times as long as before, {max(one.values('highest_spike')):.2f} times at most.",
                markup=False,
            )
    out.print(PUBLISHED, markup=False)
    out.print(f"Medians of {rounds} rounds.", markup=False)
    finish(series, json_file, as_json(series, here, seconds))


def as_json(series: Sequence[Series], here: machine.Machine, seconds: float) -> dict[str, object]:
    """The whole result as a document."""
    names = {name for one in series for values in one.rounds if values for name in values}
    flat = {
        f"{one.key}.{name}": spread(one.values(name))
        for one in series
        for name in sorted(names)
        if one.values(name)
    }
    return {
        "what": "tas-cores",
        "machine": here.as_json(),
        "seconds": seconds,
        "clients": list(LEVELS),
        "threads": threads_here(),
        "problems": {one.key: one.problem for one in series if one.problem},
        "cases": nested(flat),
        "lines": {one.key: one.lines for one in series},
    }


def way_table(one: Series, seconds: float) -> object:
    """A line for each level."""
    grid = table(
        f"Five clients come and go, {seconds:g} s apart: {one.way.text}",
        *("clients", "offered\n1000/s", "answered\n1000/s"),
        *("threads", "median\nµs", "P99\nµs", "samples"),
        tight=True,
    )
    for number, clients in enumerate(LEVELS):
        cells = [str(clients)]
        for name, scale, form in (
            ("offered", 1e3, ".1f"),
            ("rate", 1e3, ".1f"),
            ("threads", 1, ".2f"),
            ("p50_us", 1, ",.0f"),
            ("p99_us", 1, ",.0f"),
            ("samples", 1, ",.0f"),
        ):
            values = one.values(f"{number}.{name}")
            cells.append(format(statistics.median(values) / scale, form) if values else "")
        grid.add_row(*cells)
    return grid
