# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Reading homa-bench's results: canned ones, and those of the real program."""

import copy
import json
import socket
from pathlib import Path

import pytest
from conftest import needs_bench

from lab.bench import results
from lab.errors import LabError
from lab.paths import homa_bench
from lab.net.runner import Job, run_jobs


def summary(values: list[int]) -> dict:
    counts = {value: values.count(value) for value in values}
    histogram = {
        "values": sorted(counts),
        "counts": [counts[v] for v in sorted(counts)],
        "count": len(values),
        "sum": sum(values),
        "min": min(values),
        "max": max(values),
    }
    return {"count": len(values), "histogram": histogram}


def canned(scale: int = 1) -> dict:
    """A node's result with two deciles of two RPCs each; times in ns times `scale`."""
    rows = [
        {
            "decile": n + 1,
            "size_min": 10**n,
            "size_max": 10 ** (n + 1),
            "failed": n,
            "censored": 0,
            "latency_ns": summary([1000 * scale, 2000 * scale]),
            "slowdown": summary([1000, 1024 * scale]),
        }
        for n in range(2)
    ]
    return {
        "schema": "homa-bench/1",
        "complete": True,
        "config": {"transport": "tcp", "mean_bytes": 100},
        "time": {"window_s": 2.0},
        "rpcs": {"completed": 4, "failed": 1, "unfinished": 1},
        "throughput": {"goodput_gbps": 0.5, "rps": 2.0, "offered_load": 0.8, "achieved_load": 0.4},
        "cpu": {"user_s": 0.25, "system_s": 0.5, "machine_busy_s": 3.0},
        "generator": {"lag_ns": {"count": 4, "p99": 250000}, "limited": scale > 1},
        "latency_ns": {"count": 4},
        "deciles": rows,
        "retransmits": 7,
        "transport": {"name": "tcp"},
    }


def test_parse_load() -> None:
    result = results.parse_load(canned())
    assert (result.transport, result.completed, result.failed, result.retransmits) == (
        "tcp",
        4,
        1,
        7,
    )
    assert (result.goodput_bps, result.wire_load, result.cpu_s, result.limited) == (
        5e8,
        0.4,
        0.75,
        False,
    )
    assert [(c.size_min, c.size_max, c.failed, c.latency.count) for c in result.classes] == [
        (1, 10, 0, 2),
        (10, 100, 1, 2),
    ]


def test_parse_load__one_size_has_one_class() -> None:
    data = {**canned(), "deciles": [], "latency_ns": summary([5, 6, 7])}
    (only,) = results.parse_load(data).classes
    assert (only.size_min, only.size_max, only.latency.percentile(50)) == (100, 100, 6)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda d: d.pop("schema"), "homa-bench/1"),
        (lambda d: d.update(schema="homa-bench/9"), "homa-bench/1"),
        (lambda d: d.update(complete=False, ended_by="No route to host"), "No route to host"),
        (lambda d: d["throughput"].pop("rps"), "rps"),
        (lambda d: d["deciles"][0]["latency_ns"].pop("histogram"), "histogram"),
        (lambda d: d["deciles"][1]["latency_ns"]["histogram"].update(count=99), "count 99"),
        (lambda d: d.update(cpu=None), "NoneType"),
    ],
)
def test_parse_load__damage_is_named(damage, says: str) -> None:
    data = copy.deepcopy(canned())
    damage(data)
    with pytest.raises(LabError, match=says):
        results.parse_load(data)
    with pytest.raises(LabError):
        results.parse_load("nonsense")


def test_combine__merges_hosts() -> None:
    run = results.combine(
        "tcp", 49152, [results.parse_load(canned()), results.parse_load(canned(scale=10))]
    )
    assert [row.count for row in run.rows] == [4, 4]
    assert (run.rows[0].size_low, run.rows[1].size_high) == (1, 100)
    assert run.rows[0].p50_us == pytest.approx(2.0)  # of 1, 2, 10, 20 µs
    assert run.rows[0].p99_us == pytest.approx(20.0, rel=0.001)
    assert run.rows[0].slowdown_p99 == pytest.approx(10.24, rel=0.001)
    assert run.overall.count == 8
    assert (run.completed, run.failed, run.goodput_bps, run.cpu_s) == (8, 2, 1e9, 3.0)
    assert run.offered_load == pytest.approx(0.8)
    assert "250 µs late" in run.notes[0]


def rows(*pairs: tuple[int, float]) -> list[results.Unloaded]:
    return [results.Unloaded(size, 10, p50, p50 * 2) for size, p50 in pairs]


def test_best_unloaded__takes_the_best_of_all_and_never_falls() -> None:
    best = results.best_unloaded(
        [rows((10, 50.0), (100, 70.0), (1000, 65.0)), rows((10, 40.0), (100, 80.0), (5000, 90.0))]
    )
    assert best == [
        {"size": 10, "p50_ns": 40.0},
        {"size": 100, "p50_ns": 65.0},
        {"size": 1000, "p50_ns": 65.0},
        {"size": 5000, "p50_ns": 90.0},
    ]
    assert results.best_unloaded([]) == []


def test_parse_unloaded() -> None:
    data = {
        "schema": "homa-bench/1",
        "complete": True,
        "unloaded": [{"size": 9, "count": 3, "p50_ns": 5, "p99_ns": 8}],
    }
    assert results.parse_unloaded(data) == [results.Unloaded(9, 3, 5.0, 8.0)]
    with pytest.raises(LabError, match="unloaded"):
        results.parse_unloaded({"schema": "homa-bench/1", "complete": True})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@needs_bench
def test_contract__the_real_program_is_understood(tmp_path: Path) -> None:
    """Denominators from an unloaded run feed a loaded one, on loopback over TCP."""
    program, address = str(homa_bench()), f"127.0.0.1:{free_port()}"
    server = Job(
        "server", [program, "server", "--transport", "tcp", "--bind", address], background=True
    )
    common = [
        "--peer",
        address,
        "--transport",
        "tcp",
        "--workload",
        "w4",
        "--quiet",
        "--json",
        "{json}",
    ]
    unloaded = Job("unloaded", [program, "client", *common, "--unloaded", "--samples", "3"])
    best = results.best_unloaded([results.parse_unloaded(run_jobs([server, unloaded], 60)[1])])
    assert best[0]["size"] >= 1 and best[-1]["size"] == 1_000_000
    file = tmp_path / "denominators.json"
    file.write_text(json.dumps({"unloaded": best}))
    load = ["--load", "0.3", "--link", "500mbit", "--duration", "1", "--denominators", str(file)]
    result = results.parse_load(
        run_jobs([server, Job("load", [program, "client", *common, *load])], 60)[1]
    )
    run = results.combine("tcp", 1, [result])
    assert len(run.rows) == 10
    assert run.completed > 0 and run.failed == 0
    assert sum(row.count for row in run.rows) == run.overall.count == run.completed
    assert all(row.slowdown_p99 > 0 for row in run.rows if row.count)
