# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run failures`: when what fails, who was concerned, and small real runs."""

import json
import math
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import running
from conftest import needs_bench, needs_root

from lab.cluster.setup import Setup
from lab.errors import LabError, UsageError
from lab.failures import faults, measured, run, show
from lab.failures.faults import Cell
from lab.failures.measured import Fates, Measured, Others
from lab.net import guardian
from lab.net.hosts import Host
from lab.net.runner import Job, Standstill, run_jobs
from lab.net.switch import Switch

SETUP = Setup(
    hosts=4, link_bps=25 * 10**9, dilate=20, mtu=3000, buffer=325_000, seed=1,
    messages=12_000, longest_s=300, via="program",
)  # fmt: skip
RATE = 1_250_000_000


def _cell(fault: str, transport: str = "homa") -> Cell:
    return Cell(transport, "w4", 10, fault)


def _measured(fault: str, p99_us: float | None, transport: str = "homa") -> Measured:
    p99 = None if p99_us is None else p99_us * 1e3
    mine = Others(9000, 0, 1800, {"p50": p99, "p99": p99}, {"p50": p99, "p99": p99})
    fates = Fates(800, 20, {"timeout": 20}, 0.5, 9.9, 10.1)
    return Measured(_cell(fault, transport), mine, fates, mine, fates, {"busy": 0.4, "drops": 1.0})


@needs_bench
def test_times__leave_homa_time_to_give_up() -> None:
    for fault in faults.FAULTS:
        when = faults.times(SETUP, _cell(fault), RATE)
        # Half a second on a fast link.
        assert when.gives_up == 10
        assert when.window >= 3 * when.gives_up and when.fails == when.window / 4
        assert when.window - when.fails > when.gives_up and when.drain >= 2 * when.gives_up
        assert (when.back - when.fails == 5) if fault == "flap" else math.isinf(when.back)
    assert faults.buffer_of(SETUP, _cell("buffer")) == 24_000
    assert faults.buffer_of(SETUP, _cell("kill")) == 325_000


@needs_bench
def test_rate__is_half_of_what_processors_need() -> None:
    """Unless the command line says it; generators were late otherwise."""
    cells = [_cell(fault, kind) for kind in faults.TRANSPORTS for fault in faults.FAULTS]
    free = replace(SETUP, dilate=0.0)
    usual, _ = free.rate([cell.point for cell in cells])
    assert faults.rate(free, cells)[0] == usual // 2
    assert faults.rate(SETUP, cells) == SETUP.rate([cell.point for cell in cells])


def test_breaker__does_all_at_its_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    now = [100.0]
    monkeypatch.setattr(run, "run", lambda argv: said.append(" ".join(argv[-2:])))
    monkeypatch.setattr(run.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(run.os, "kill", lambda pid, number: said.append(f"kill {pid}"))
    hosts = [Host(f"h{n}", f"10.9.0.{n}") for n in (1, 2, 3)]
    switch = Switch("s", RATE, 325_000, True, ["port1", "port2", "port3"], hosts)
    when = faults.Times(1, 20, 5, 9, 8, 20)

    def at(moment: float, breaker: run.Breaker) -> list[str]:
        now[0] = moment
        said.clear()
        breaker.tick()
        return list(said)

    flap = run.Breaker(switch, _cell("flap"))
    flap.plan(100, when)
    assert at(104.9, flap) == [] and at(105, flap) == ["port3 down"]
    assert at(108, flap) == [] and at(109.1, flap) == ["port3 up"] and at(110, flap) == []
    kill = run.Breaker(switch, _cell("kill"))
    kill.plan(100, replace(when, back=math.inf))
    kill.started([7, 8, 9])
    assert at(105, kill) == ["port3 down", "kill 9"] and at(200, kill) == []
    for fault in ("none", "buffer"):
        calm = run.Breaker(switch, _cell(fault))
        calm.plan(100, when)
        assert at(500, calm) == []
    kill.mend()
    assert said == ["port3 up"]


def _summary(values: list[int]) -> dict:
    if not values:
        return {"count": 0}
    counts = {value: values.count(value) for value in sorted(values)}
    return {
        "count": len(values), "min": min(values), "max": max(values),
        "histogram": {
            "values": list(counts), "counts": list(counts.values()), "count": len(values),
            "sum": sum(values), "min": min(values), "max": max(values),
        },
    }  # fmt: skip


@needs_bench
def test_cell__a_run_that_is_repeated_has_all_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run has broken one of them."""
    said: list[str] = []

    def stops(*_: object, **__: object) -> None:
        said.append("runs")
        if said.count("runs") == 1:
            said.append("down")
            raise Standstill(2, [None])
        raise LabError("second")

    monkeypatch.setattr(run, "run_jobs", stops)
    monkeypatch.setattr(run, "run", lambda argv: said.append(argv[-1]))
    monkeypatch.setattr(run, "_simulated", lambda *_: {})
    monkeypatch.setattr(Switch, "set_buffer", lambda *_: None)
    hosts = [Host("none", f"10.9.0.{n}") for n in (1, 2, 3)]
    switch = Switch("none", RATE, 325_000, True, ["port1", "port2", "port3"], hosts)
    with pytest.raises(LabError, match="second"):
        run._cell(replace(SETUP, hosts=3), switch, _cell("kill"), 20, lambda: None)
    again = said[said.index("down") + 1 :]
    assert again[: again.index("runs")] == ["up"]


def test_concerned__all_hosts_together() -> None:
    one = {
        "completed": 5, "failed": 2, "errors": {"timeout": 2}, "latency_ns": {"max": 2_000_000_000},
        "error_ns": _summary([1_000_000_000, 3_000_000_000]),
    }  # fmt: skip
    other = {
        "completed": 7, "failed": 1, "errors": {"ECONNRESET": 1}, "latency_ns": {"max": 5e8},
        "error_ns": _summary([200_000_000]),
    }  # fmt: skip
    found = measured.concerned([{"apart": one}, {"apart": other}])
    assert (found.completed, found.failed, found.longest) == (12, 3, 2)
    assert found.errors == {"timeout": 2, "ECONNRESET": 1}
    assert (found.error_first, found.error_last) == (0.2, 3)
    calm = {**other, "failed": 0, "errors": {}, "error_ns": {"count": 0}}
    assert measured.concerned([{"apart": calm}]).error_first is None
    with pytest.raises(LabError, match="homa-bench"):
        measured.concerned([{"apart": {"completed": 1}}])


def test_simulated__apart_and_the_rest() -> None:
    rows = [
        {"failed": 1 if n == 9 else 0, "latency_ns": _summary([1000 + n] * 600)} for n in range(10)
    ]
    apart = {
        "latency_ns": {"count": 3, "max": 4e9},
        "error_ns": {"count": 2, "min": 1e9, "max": 2e9},
    }
    found, fates = measured.simulated({"deciles": rows, "sim": {"apart": apart}})
    assert (found.count, found.failed, found.short_count) == (6000, 1, 1200)
    assert found.short["p99"] == 1001 and found.all["p50"] == 1004
    assert fates == Fates(3, 2, {}, 4, 1, 2)
    nothing = measured.simulated({})
    assert nothing[0].short["p99"] is None and nothing[1] == Fates(0, 0)


def test_summary__of_runs_that_count() -> None:
    results = [_measured("none", 100), _measured("kill", 150), _measured("flap", None)]
    rows = show.summary(results)
    assert [row["short_p99_ratio"] for row in rows] == [1.5, None]
    assert rows[0]["failed"] == rows[0]["wrong"] == 0
    # Twenty failed in each, but not those to a host that is gone.
    assert show.unjust(results) == 40 and show.unjust([_measured("kill", 1, "tcp")]) is None
    wrong = replace(results[1], others=replace(results[1].others, failed=2, wrong=3))
    assert show.unjust([wrong]) == 5
    results[0] = replace(results[0], doubts=["busy"])
    assert show.summary(results)[0]["short_p99_ratio"] is None
    assert show.summary(results)[0]["sim"] == 1.5
    assert show.summary(results[1:]) == []
    again = measured.from_json(json.loads(json.dumps(results[1].as_json())))
    assert again == results[1]


def test_job__that_may_be_killed() -> None:
    """It ends the run neither by its death nor by living on."""
    for words in ("exit 3", "kill -9 $$", "sleep 100"):
        jobs = [Job("a", ["sleep", "0.3"])]
        jobs.append(Job("victim", ["sh", "-c", words], mortal=True))
        assert run_jobs(jobs, 60) == [None, None]
    with pytest.raises(LabError, match="victim"):
        run_jobs([jobs[0], Job("victim", ["sh", "-c", "exit 3"])], 60)


@pytest.mark.parametrize(
    ("argv", "remedy"),
    [
        (["--faults", "fire"], "none, kill, flap, buffer"),
        (["--transports", "tcp-pool"], "homa, tcp"),
        (["--rpc", "10,20"], "one load"),
        (["--workloads", "w3,w4"], "one workload"),
        (["--streams", "10"], "alone"),
        (["--hosts", "2"], "3 or more"),
        (["--plot", "x.png"], "no figure"),
    ],
)
def test_failures__wrong(cli, argv: list[str], remedy: str) -> None:
    if argv[0] in ("--hosts", "--plot") and os.geteuid():
        pytest.skip("root is asked for first")
    status, _, err = cli("run", "failures", *argv)
    assert status == 2 and remedy in err
    assert cli("run", "coexist", "--faults", "kill")[0] == 2
    with pytest.raises(UsageError):
        faults.parse_load("x")


def _start(folder: Path, which: str) -> subprocess.Popen:
    argv = ["failures", "--hosts", "3", "--dilate", "8"]
    argv += ["--rpc", "1", "--messages", "100", "--quick", "--faults", which]
    argv += ["--transports", "homa", "--json", str(folder / "r.json")]
    return running.start(*argv)


@needs_root
@needs_bench
def test_failures__a_host_goes_and_a_link_flaps(tmp_path: Path) -> None:
    """RPCs to a host that is gone fail, all others come, and no byte is wrong."""
    process = _start(tmp_path, "kill,flap")
    text = process.communicate(timeout=500)[0]
    assert process.returncode == 0, text
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["what"] == "lab-run failures" and document["where"]["kernel"]
    kill, flap = document["runs"]
    for one in (kill, flap):
        assert one["others"]["count"] > 100 and one["others"]["failed"] == 0, text
        assert one["others"]["wrong"] == 0 and one["others"]["short"]["p99"] is None
        assert one["concerned"]["completed"] > 0
        assert one["others"]["count"] == one["sim_others"]["count"]
        assert one["counts"] == (not one["doubts"])
    gone = kill["concerned"]
    assert gone["failed"] == sum(gone["errors"].values()) > 0
    # Nothing is given up before its time.
    assert gone["error_first"] >= 0.9 * kill["facts"]["gives_up"]
    assert kill["sim_concerned"]["failed"] > 0
    # A link that is back in time costs no RPC.
    assert flap["concerned"]["failed"] == flap["sim_concerned"]["failed"] == 0, text
    assert not guardian.namespaces(f"{guardian.PREFIX}{process.pid}-")


@needs_root
@needs_bench
def test_failures__killed_leaves_nothing(tmp_path: Path) -> None:
    running.killed_leaves_nothing(_start(tmp_path, "flap"), 4)
