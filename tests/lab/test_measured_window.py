# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Each experiment of `./homa lab run` says in which time a standstill of the machine spoils it."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from conftest import needs_bench

from lab.cluster import run as figure
from lab.cluster import simulated
from lab.cluster.points import Point
from lab.cluster.real_and_simulated import Idle
from lab.cluster.setup import Setup
from lab.coexist import run as coexist
from lab.coexist.grid import Cell as Beside
from lab.failures import run as failures
from lab.failures.faults import Cell as Failing
from lab.incast import run as incast
from lab.incast.bursts import Cell as Burst
from lab.net.hosts import Host
from lab.net.runner import Job
from lab.net.switch import Switch
from lab.sustained import run as sustained
from lab.sustained.loads import Cell as Load

SETUP = Setup(
    hosts=3, link_bps=25 * 10**9, dilate=250, mtu=3000, buffer=325_000, seed=1,
    messages=12_000, longest_s=20, via="program",
)  # fmt: skip
SWITCH = Switch(
    "none", 10**8, 325_000, True, ["port1", "port2", "port3"],
    [Host("none", f"10.9.0.{n}") for n in (1, 2, 3)],
)  # fmt: skip
POINT = Point("tcp", "w4", 0.5)
MODEL = simulated.Model([], Idle((8,), (1e5,)), {})


class Seen(Exception):
    """What would have run, and the time in which it is measured."""

    def __init__(self, jobs: list[Job], measured: tuple[float, float]) -> None:
        super().__init__()
        self.jobs, self.measured = jobs, measured


def _run_jobs(jobs: list[Job], *_: object, measured: tuple[float, float] | None = None) -> None:
    assert measured, "a standstill before and after what is measured counts"
    raise Seen(jobs, measured)


def _never() -> None:
    pass


EXPERIMENTS: list[tuple[ModuleType, Callable[[], object]]] = [
    (figure, lambda: figure._loaded(SETUP, SWITCH, POINT, 250, Idle((8,), (1e5,)), MODEL, _never)),
    (
        coexist,
        lambda: coexist._cell(
            SETUP, SWITCH, Beside("w4", "tcp", 30, 10), 250, Path("none"), [], _never
        ),
    ),
    (
        coexist,
        lambda: coexist._cell(
            SETUP, SWITCH, Beside("w4", "", 0, 10), 250, Path("none"), [], _never
        ),
    ),
    (
        failures,
        lambda: failures._cell(SETUP, SWITCH, Failing("tcp", "w4", 10, "none"), 250, _never),
    ),
    (incast, lambda: incast._cell(SETUP, SWITCH, Burst("tcp", 2), 250, {}, _never)),
    (sustained, lambda: sustained._cell(SETUP, SWITCH, Load("tcp", "w4", 80, 1), 250, _never)),
]


def _of(job: Job, option: str) -> float:
    """The last value that `job` is given for an option."""
    at = len(job.argv) - 1 - job.argv[::-1].index(option)
    return float(job.argv[at + 1].removeprefix("mono:"))


@needs_bench
@pytest.mark.parametrize(
    ("module", "measure"),
    EXPERIMENTS,
    ids=["figure", "coexist", "streams", "failures", "incast", "sustained"],
)
def test_measured__is_the_time_of_the_load(
    module: ModuleType, measure: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first arrival to the end of the window; where RPCs are given up after it, to then."""
    monkeypatch.setattr(module, "run_jobs", _run_jobs)
    monkeypatch.setattr(Switch, "set_buffer", lambda *_: None)
    monkeypatch.setattr(failures.Breaker, "mend", lambda *_: None)
    for one in (failures, sustained):
        monkeypatch.setattr(one, "_simulated", lambda *_: {})
    with pytest.raises(Seen) as seen:
        measure()
    begins, ends = seen.value.measured
    loads = [job for job in seen.value.jobs if "--start-at" in job.argv]
    streams = [job for job in seen.value.jobs if "--measure-at" in job.argv]
    assert len(loads) + len(streams) >= 1
    for job in loads:
        start, window = _of(job, "--start-at"), _of(job, "--duration")
        after = _of(job, "--drain") if module is failures else 0.0
        assert begins == pytest.approx(start, abs=1e-5)
        assert ends == pytest.approx(start + _of(job, "--warmup") + window + after, abs=1e-5)
    for job in streams:
        opens = _of(job, "--measure-at")
        assert begins <= opens and ends == pytest.approx(opens + _of(job, "--duration"), abs=1e-5)
