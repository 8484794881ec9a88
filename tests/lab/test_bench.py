# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import io
import json

import pytest
from conftest import needs_bench, needs_root
from test_results import canned, summary

from lab.bench import configs as bench_configs, run as bench
from lab.targets import goals as targets
from lab.bench.run import Series
from lab.bench.configs import METRICS, Config
from lab.console import WIDTH, console
from lab.errors import LabError


def series(
    key: str, transport: str, rounds: list[float], group: str = "", metric: str = "rate"
) -> Series:
    other = {m.name: 1.0 for m in METRICS["rate"]}
    return Series(
        Config(key, key, transport, group=group), [{**other, metric: value} for value in rounds]
    )


def test_ratios__to_whichever_tcp_was_best_in_that_round() -> None:
    rows = [
        series("a", "tcp", [100, 400]),
        series("b", "tcp-pool", [200, 200]),
        series("h", "homa", [400, 400]),
    ]
    (found,) = bench.ratios("rate", rows).values()
    assert found["rate_to_best_tcp"] == {
        "median": 1.5,
        "min": 1.0,
        "max": 2.0,
        "rounds": [2.0, 1.0],
    }
    assert found["cpu_us_to_best_tcp"]["median"] == 1.0


def test_ratios__lower_is_better_for_times_and_groups_stay_apart() -> None:
    rows = [
        series("a", "tcp", [10], "x", "cpu_us"),
        series("b", "tcp", [5], "x", "cpu_us"),
        series("c", "tcp", [1], "y", "cpu_us"),
        series("h", "homa", [4], "x", "cpu_us"),
    ]
    assert bench.ratios("rate", rows)["h"]["cpu_us_to_best_tcp"]["median"] == 0.8


def test_ratios__without_a_rival_or_values() -> None:
    assert bench.ratios("rate", [series("h", "homa", [4])]) == {}
    assert bench.ratios("rate", [series("h", "homa", []), series("a", "tcp", [1])]) == {}


def test_extract() -> None:
    data = {**canned(), "deciles": [], "latency_ns": summary([5000, 6000, 9000])}
    assert bench.extract("rtt", data) == {
        "median": pytest.approx(6, rel=1e-3),
        "p99": 9.0,
        "cpu_us": 750_000,
    }
    assert bench.extract("rate", data)["per_cpu_second"] == pytest.approx(4 / 3)
    assert bench.extract("goodput", data)["goodput"] == 5e8
    data["throughput"]["rps"] = 0
    with pytest.raises(LabError, match="no RPC"):
        bench.extract("rate", data)


@pytest.mark.parametrize("what", list(METRICS))
def test_configurations__keys_are_unique_and_every_target_has_one(what: str) -> None:
    configs = bench_configs.configurations(what, {"homa", "tcp", "tcp-pool"}, root=True)
    keys = [config.key for config in configs]
    assert len(set(keys)) == len(keys)
    rows = [t for t in targets.load_targets() if t.command.startswith(f"./homa bench {what} ")]
    assert rows
    for row in rows:
        _, key, metric = row.path.split(".")
        assert key in keys
        assert metric.removesuffix("_to_best_tcp") in {m.name for m in METRICS[what]}


def test_configurations__what_cannot_run_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(
        "afxdp" in c.key for c in bench_configs.configurations("rate", {"homa"}, root=False)
    )
    monkeypatch.setattr(bench_configs.os, "sched_getaffinity", lambda _: {0})
    assert all(
        c.cores in (None, (0, 0)) for c in bench_configs.configurations("rtt", {"tcp"}, root=True)
    )


@pytest.mark.parametrize("what", list(METRICS))
def test_table__fits(what: str) -> None:
    rows = []
    for config in bench_configs.configurations(what, {"homa", "tcp", "tcp-pool"}, root=True):
        rows.append(
            Series(
                config, [{m.name: n * m.scale for m in METRICS[what]} for n in (98765.4, 123456.7)]
            )
        )
    out = io.StringIO()
    console(out).print(bench.result_table(what, rows, bench.ratios(what, rows)))
    text = out.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= WIDTH


@needs_root
@needs_bench
def test_bench__end_to_end_with_tcp(cli, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(bench, "known_transports", lambda: {"tcp"})
    file = tmp_path / "r.json"
    status, out, _ = cli("bench", "rtt", "--rounds", "2", "--seconds", "0.1", "--json", str(file))
    assert status == 0
    document = json.loads(file.read_text())
    assert document["configurations"]["tcp_block_same"]["median"]["median"] > 0
    assert len(document["configurations"]["tcp_block_same"]["median"]["rounds"]) == 2
    assert "TCP, blocking read, same core" in out
