# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What transports cost when there is little to do: the row "light load" of `./homa bench service`.

A client sends at times that do not depend on the system (Poisson arrivals) and sleeps until the next one is due; a
latency begins when the request should have left. All programs of a case are weighed together, daemons included: their
processor time and switches are the kernel's own accounts, read twice in the measured window. System calls are counted
by perf in a short run of their own, because counting disturbs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from lab.bench.results import BenchResult
from lab.errors import LabError
from lab.net.homad import Effort, effort

SAMPLES = 1000  # of which the slowest hundredth is still ten
MARGIN = 1.2  # arrivals are random
EDGE_S = 0.1  # of the measured window, at either end, that is not weighed
COUNT_S = 0.5
EVENT = "raw_syscalls:sys_enter"


def window(seconds: float, rate: int) -> float:
    """How long to measure, so that there are enough samples."""
    return max(seconds, MARGIN * SAMPLES / rate, 4 * EDGE_S)


def idle_s() -> float:
    """Seconds that all cores of the machine together have been idle (or with the hypervisor)."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()
    return sum(int(words[n]) for n in (4, 5, 8)) / os.sysconf("SC_CLK_TCK")


def with_children(pids: list[int]) -> list[int]:
    """These processes and those that they have forked."""
    found = list(pids)
    for pid in pids:
        with suppress(OSError):
            text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            found += [int(word) for word in text.split()]
    return found


class Scales:
    """Weighs processes between `opens` and `closes` of the monotonic clock; see run_jobs()."""

    def __init__(self, opens: float, closes: float, daemons: list[int]) -> None:
        self._at = (opens + EDGE_S, closes - EDGE_S)
        self._pids = daemons
        self._weights: list[tuple[Effort, float]] = []

    def started(self, pids: list[int]) -> None:
        """These belong to it, too."""
        self._pids = [*self._pids, *pids]

    def tick(self) -> None:
        """Look, when it is time."""
        if len(self._weights) < 2 and time.monotonic() >= self._at[len(self._weights)]:
            self._weights.append((effort(*with_children(self._pids)), idle_s()))

    def values(self, rate: float) -> dict[str, float]:
        """Percent of a core, and sleeps and other switches for each of `rate` RPCs per second."""
        if len(self._weights) < 2:
            raise LabError("the programs ended before they could be weighed")
        (before, idle_before), (after, idle_after) = self._weights
        seconds = after.at - before.at
        busy = seconds * (os.cpu_count() or 1) - (idle_after - idle_before)
        return {
            "cpu": 100 * (after.cpu_s - before.cpu_s) / seconds,
            "machine": 100 * max(busy, 0.0) / seconds,
            "sleeps": (after.sleeps - before.sleeps) / seconds / rate,
            "switches": (after.switches - before.switches) / seconds / rate,
        }


class Counter:
    """Counts the system calls of processes for COUNT_S from `opens` on; see run_jobs()."""

    def __init__(self, opens: float, daemons: list[int]) -> None:
        self._opens = opens
        self._pids = daemons
        self._perf: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="homa-lab-")
        self._file = Path(self._folder.name) / "perf"

    def started(self, pids: list[int]) -> None:
        """These belong to it, too."""
        self._pids = [*self._pids, *pids]

    def tick(self) -> None:
        """Begin, when it is time."""
        if self._perf or time.monotonic() < self._opens:
            return
        pids = ",".join(str(pid) for pid in with_children(self._pids))
        argv = ["perf", "stat", "-x", ",", "-o", str(self._file), "-e", EVENT, "-p", pids]
        self._perf = subprocess.Popen(
            [*argv, "--", "sleep", str(COUNT_S)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def values(self, rate: float) -> dict[str, float]:
        """System calls per RPC; nothing if perf cannot count them here."""
        if self._perf:
            self._perf.wait()
        text = self._file.read_text() if self._file.exists() else ""
        self._folder.cleanup()
        for line in text.splitlines():
            words = line.split(",")
            if EVENT in line and words[0].isdigit():
                return {"syscalls": int(words[0]) / COUNT_S / rate}
        return {}


def can_count() -> bool:
    """Is there a perf that could?"""
    return shutil.which("perf") is not None


def latencies(load: BenchResult) -> dict[str, float]:
    """Of what the client reported, µs."""
    latency = load.classes[0].latency
    if load.failed:
        raise LabError(f"{load.failed} RPCs failed")
    if latency.count < SAMPLES:
        raise LabError(f"{latency.count} RPCs are too few to say what the slowest hundredth takes")
    return {
        "median": float(latency.percentile(50)) / 1e3,
        "p99": float(latency.percentile(99)) / 1e3,
        "samples": float(latency.count),
        "sent": load.from_send_p50_ns / 1e3,
        "late": load.lag_p50_ns / 1e3,
    }


def ring_values(document: dict | None, names: set[str]) -> dict[str, float]:
    """What tests/counts/ring.c found, of these metrics."""
    if not document or not document["rps"]:
        raise LabError("the ring's messages did not come back")
    where = {
        "median": ("latency_ns", "p50", 1e3),
        "p99": ("latency_ns", "p99", 1e3),
        "samples": ("latency_ns", "count", 1),
        "sent": ("from_send_ns", "p50", 1e3),
        "late": ("late_ns", "p50", 1e3),
    }
    if "samples" in names and (count := document["latency_ns"]["count"]) < SAMPLES:
        raise LabError(f"{count} messages are too few to say what the slowest hundredth takes")
    values = {"rate": document["rps"]} if "rate" in names else {}
    for name in names & set(where):
        part, key, divisor = where[name]
        values[name] = document[part][key] / divisor
    return {name: float(value) for name, value in values.items()}
