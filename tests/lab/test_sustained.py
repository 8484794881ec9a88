# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run sustained`: loads, the rule, and a tiny real run."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import running
from conftest import needs_bench, needs_root

from lab.errors import LabError, UsageError
from lab.net import guardian
from lab.sim.sustain import SEEDS
from lab.sustained import command, loads
from lab.sustained.loads import Cell, Measured


def _runs(load: int, lab: float, sim: float = 0.0, transport: str = "homa") -> list[Measured]:
    """Three seeds, all but alike."""
    return [
        Measured(Cell(transport, "w4", load, seed), [lab + n, lab - n], [sim + n, sim - n])
        for seed, n in ((1, -1e-4), (2, 0.0), (3, 1e-4))
    ]


@needs_bench
def test_cell__load_on_the_wire_is_more_than_payload() -> None:
    point = Cell("homa", "w4", 88, 1).point(3000)
    assert 0.8 < point.load < 0.88
    assert Cell("homa", "w4", 44, 1).point(3000).load == pytest.approx(point.load / 2)
    # A third of the link and more is headers of W1's short messages.
    assert Cell("homa", "w1", 88, 1).point(3000).load < 0.6


def test_cells__three_seeds_of_each_load() -> None:
    found = loads.cells("w4", (80, 88), ("homa", "tcp"), 5)
    assert len(found) == len(set(found)) == 2 * 2 * SEEDS
    assert [c.seed for c in found[:3]] == [5, 6, 7] and found[3].load == 88


def _backlog(values: list[float]) -> dict:
    return {
        "backlog": {"interval_s": 0.5, "samples": values}, "throughput": {"offered_gbps": 8e-6},
    }  # fmt: skip


def test_growths__of_all_hosts_beyond_the_oracles() -> None:
    # Two hosts, each of which offers 1,000 bytes a second; together 20 bytes more each half second.
    ours = [_backlog([100.0 + 15 * n for n in range(30)]), _backlog([5.0 * n for n in range(30)])]
    flat = {
        "throughput": {"offered_gbps": 16e-6},
        "sim": {
            "backlog": {"interval_s": 0.5, "samples": [7.0] * 30, "reference": [50.0] * 30}
        },
    }  # fmt: skip
    lab, sim = loads.growths(ours, flat)
    assert lab == [pytest.approx(0.02)] * 2 and sim == [pytest.approx(0)] * 2
    flat["sim"]["backlog"]["reference"] = [20.0 * n for n in range(30)]  # type: ignore[index]
    assert loads.growths(ours, flat)[0] == [pytest.approx(0, abs=1e-9)] * 2
    for damaged in ([], [{"backlog": {}}], [{}]):
        with pytest.raises(LabError, match="rebuild"):
            loads.growths(damaged, flat)


def test_highest__ends_below_the_first_that_is_not_shown() -> None:
    results = [*_runs(80, 0.0), *_runs(84, 0.001), *_runs(88, 0.05), *_runs(92, 0.0)]
    assert loads.highest(results, "homa", "lab") == 84
    assert loads.highest(results, "homa", "sim") == 92
    assert loads.verdict(results[6:9], "lab").words() == "not sustained"
    assert loads.verdict(results[:2], "lab").words() == "undecided"  # two seeds are too few
    doubted = [replace(results[4], doubts=["busy"]) if n == 4 else r for n, r in enumerate(results)]
    assert loads.highest(doubted, "homa", "lab") == 80
    assert loads.highest(results[6:], "homa", "lab") is None
    assert loads.highest(results, "tcp", "lab") is None
    one = results[4]
    assert loads.from_json(json.loads(json.dumps(one.as_json()))) == one


@pytest.mark.parametrize(
    ("argv", "remedy"),
    [
        (["--rpc", "100"], "--rpc"),
        (["--transports", "tcp-pool"], "homa, tcp"),
        (["--workloads", "w3,w4"], "one workload"),
        (["--faults", "kill"], "alone"),
    ],
)
def test_sustained__wrong(cli, argv: list[str], remedy: str) -> None:
    status, _, err = cli("run", "sustained", *argv)
    assert status == 2 and remedy in err
    with pytest.raises(UsageError):
        command.parse_loads("")
    assert command.parse_loads("88, 80,88") == (80, 88)


def _start(folder: Path) -> subprocess.Popen:
    argv = ["sustained", "--hosts", "2", "--dilate", "100"]
    argv += ["--rpc", "20", "--longest", "2", "--quick", "--json", str(folder / "r.json")]
    return running.start(*argv)


@needs_root
@needs_bench
def test_sustained__real_packets_beside_the_simulator(tmp_path: Path) -> None:
    """The result is whole; two seconds decide nothing."""
    process = _start(tmp_path)
    text = process.communicate(timeout=500)[0]
    assert process.returncode == 0, text
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["what"] == "lab-run sustained" and document["where"]["kernel"]
    runs = document["runs"]
    assert [r["cell"]["seed"] for r in runs] == [1, 2, 3]
    for one in runs:
        assert one["facts"]["completed"] > 10 and one["facts"]["failed"] == 0
        assert all(isinstance(v, float) for v in [*one["lab"], *one["sim"]])
        assert one["counts"] == (not one["doubts"])
    assert "sustains" in text
    assert not guardian.namespaces(f"{guardian.PREFIX}{process.pid}-")


@needs_root
@needs_bench
def test_sustained__killed_leaves_nothing(tmp_path: Path) -> None:
    running.killed_leaves_nothing(_start(tmp_path), 3)
