# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Starts load generators in hosts and collects what they report.

Jobs of one group run at the same time; the group ends when all have ended. The first that
fails ends the others, and its own words become the error.
"""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError
from lab.net.hosts import Host

TICK_S = 0.05

# Virtual machines are sometimes stopped for seconds by what runs them. No measurement survives
# that, so run_jobs() watches its own clock; gaps above this are no scheduler's doing.
STANDSTILL_S = 0.5
ALWAYS = (0.0, math.inf)

REAL_TIME = ["chrt", "--fifo", "1"]


class Standstill(Exception):
    """The machine stood still for `seconds` in a measurement; `results` is what came out."""

    def __init__(self, seconds: float, results: list[dict | None]) -> None:
        super().__init__(f"the machine stood still for {seconds:.1f} s")
        self.results = results


@dataclass(frozen=True)
class Job:
    """`argv` in `host` (None: here); {json} in it becomes the file that the result is read from.

    A `background` job (a server) is ended when the others are through, and a `mortal` one may end in
    the run, however it does. `urgent` jobs go before the other programs of the machine (root only),
    so that these disturb less. A `punctual` one, which must not spin, has a processor as soon as it
    wakes up, whatever runs there (root only).
    """

    name: str
    argv: list[str]
    host: Host | None = None
    background: bool = False
    urgent: bool = False
    punctual: bool = False
    mortal: bool = False
    env: dict[str, str] = field(default_factory=dict)


def run_jobs(
    jobs: list[Job],
    timeout: float,
    tick: Callable[[], None] = lambda: None,
    started: Callable[[list[int]], None] = lambda pids: None,
    measured: tuple[float, float] = ALWAYS,
) -> list[dict | None]:
    """Run `jobs` together for at most `timeout` seconds; the JSON of each that wrote one.

    `started` is told the processes once, `tick` is called again and again while they run.

    Standstill is raised, with the results in it, if the machine stopped between the two times of
    time.monotonic() that are `measured`. Before and after it, jobs that open or close very many
    connections may use all processors for a second, which looks the same from here.
    """
    with tempfile.TemporaryDirectory(prefix="homa-lab-") as folder:
        files = [Path(folder) / f"{index}.json" for index in range(len(jobs))]
        logs = [Path(folder) / f"{index}.log" for index in range(len(jobs))]
        running: list[subprocess.Popen[bytes]] = []
        try:
            for job, file, log in zip(jobs, files, logs, strict=True):
                running.append(_start(job, file, log))
            started([process.pid for process in running])
            longest = _wait(jobs, running, logs, time.monotonic() + timeout, tick, measured)
        finally:
            _end(running)
        found = [_load(job, file) for job, file in zip(jobs, files, strict=True)]
        if longest > STANDSTILL_S:
            raise Standstill(longest, found)
        return found


Results = list[dict | None]


def _at_most_twice(
    measure: Callable[[], Results],
) -> tuple[Results, Standstill | None, Standstill | None]:
    """What `measure` gives, repeated once after a standstill; the first and the second standstill."""
    try:
        return measure(), None, None
    except Standstill as error:
        first = error
    try:
        return measure(), first, None
    except Standstill as second:
        return second.results, first, second


def _why_not(second: Standstill | None) -> str:
    return f"{second}: these figures are not the transport's doing" if second else ""


def measure_again(measure: Callable[[], Results]) -> tuple[Results, str]:
    """What `measure` (a run_jobs()) gives, repeated once after a standstill; and a note, or ""."""
    found, first, second = _at_most_twice(measure)
    return found, _why_not(second) or (f"measured again because {first}" if first else "")


def measure_until_still(measure: Callable[[], Results]) -> tuple[Results, str]:
    """What `measure` (a run_jobs()) gives, repeated once after a standstill; and why it does not
    count if the machine stood still then, too, or ""."""
    found, _, second = _at_most_twice(measure)
    return found, _why_not(second)


def _start(job: Job, file: Path, log: Path) -> subprocess.Popen[bytes]:
    argv = [file.as_posix() if word == "{json}" else word for word in job.argv]
    if job.urgent or job.punctual:
        argv = [*ahead(job.punctual), *argv]
    if job.host:
        argv = job.host.command(argv)
    with log.open("wb") as out:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **job.env},
        )


def ahead(punctual: bool = True) -> list[str]:
    """The words before a program's own that let it go before others, or `punctual`: as soon as it
    wakes up. None for whoever is not root.

    However nice it is, a program that wakes up waits for the end of another one's slice, some 3 ms;
    one of the real-time class does not.
    """
    if os.geteuid() != 0:
        return []
    return REAL_TIME if punctual and real_time() else ["nice", "-n", "-10"]


@functools.cache
def real_time() -> bool:
    """Can programs have the real-time class here? Control groups may forbid it to root, too."""
    try:
        return (
            subprocess.run([*REAL_TIME, "true"], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


def _wait(
    jobs: list[Job],
    running: list[subprocess.Popen[bytes]],
    logs: list[Path],
    end: float,
    tick: Callable[[], None],
    measured: tuple[float, float],
) -> float:
    """Wait for all jobs; the longest time in seconds, of what is measured, that this loop itself
    was not running."""
    before, longest = time.monotonic(), 0.0
    while True:
        states = [process.poll() for process in running]
        for job, state, log in zip(jobs, states, logs, strict=True):
            if state is not None and not job.mortal and (state != 0 or job.background):
                raise LabError(f"{job.name}: {last_words(log.read_text(errors='replace'), state)}")
        if all(
            state is not None or job.background or job.mortal
            for job, state in zip(jobs, states, strict=True)
        ):
            return longest
        if time.monotonic() > end:
            late = ", ".join(
                j.name
                for j, s in zip(jobs, states, strict=True)
                if s is None and not j.background and not j.mortal
            )
            raise LabError(
                f"{late} did not come to an end in time; the machine may be overloaded, "
                "try a lower --load"
            )
        tick()
        time.sleep(TICK_S)
        now = time.monotonic()
        lost = min(now, measured[1]) - max(before, measured[0])
        longest, before = max(longest, lost - TICK_S), now


def _end(running: list[subprocess.Popen[bytes]]) -> None:
    for process in running:
        if process.poll() is None:
            process.terminate()
    for process in running:
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def last_words(text: str, state: int) -> str:
    """What a failed program said last, without its own name in front."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines:
        return lines[-1].removeprefix("homa-bench: ")
    return (
        f"ended by signal {-state}" if state < 0 else f"ended with status {state} and said nothing"
    )


def _load(job: Job, file: Path) -> dict | None:
    if not file.exists():
        return None
    try:
        return json.loads(file.read_text())
    except ValueError:
        if job.background or job.mortal:
            return None
        raise LabError(f"{job.name}: its result is not JSON") from None
