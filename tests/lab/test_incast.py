# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run incast`: bursts and their arithmetic, what does not count, and a tiny run."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import running
from conftest import needs_bench, needs_root

from lab.cluster import simulated
from lab.cluster.setup import Setup
from lab.errors import UsageError
from lab.incast import bursts, measured, plot, show
from lab.incast.bursts import Cell
from lab.incast.measured import Measured
from lab.net import guardian

SETUP = Setup(
    hosts=2, link_bps=25 * 10**9, dilate=100, mtu=3000, buffer=325_000, seed=1,
    messages=12_000, longest_s=300, via="program",
)  # fmt: skip
RATE = 250_000_000


def _measured(kind: str, senders: int, p99_us: float | None) -> Measured:
    p99 = None if p99_us is None else p99_us * 1e3
    facts = {
        "busy": 0.4, "drops": 3.0, "sim_drops": 2.0, "peak_queue": 4e4, "sim_peak_queue": 3e4,
        "retransmits": 1.0, "late_p99_ns": 5e3, "failed": 0.0,
    }  # fmt: skip
    both = {"p50": p99, "p99": p99}
    return Measured(Cell(kind, senders), 1200, 1200, 1e6 * senders, both, dict(both), facts)


def test_plan__bursts_take_their_part_of_the_link() -> None:
    # 10,000 bytes are four packets of 2,920 bytes, each with 118 of headers and framing.
    assert bursts.packets(3000) == 4 and bursts.wire_bytes(3000) == 10_000 + 4 * 118
    assert bursts.rate(SETUP) == (RATE, 100)
    for senders in (1, 7, 64):
        found = bursts.plan(SETUP, senders, RATE)
        bits = senders * bursts.wire_bytes(3000) * 8
        assert bits / found.period / RATE == pytest.approx(0.4)
        assert bursts.least_s(SETUP, senders, RATE) == pytest.approx(0.4 * found.period)
        assert found.count * senders >= 12_000 and found.count >= bursts.LEAST_BURSTS
        assert found.warmup >= 1
    short = replace(SETUP, longest_s=1.0)
    assert bursts.plan(short, 64, RATE).window <= 1


def test_arrivals__are_those_of_homa_bench() -> None:
    """One of each burst to each sender, and the window holds as many as are wanted."""
    found = bursts.plan(replace(SETUP, messages=120), 3, RATE)
    rows = [tuple(int(x) for x in line.split(",")) for line in found.arrivals()]
    times = sorted({at for at, *_ in rows})
    assert times[0] == int(found.period * 1e9)
    assert all((t, 0, n, bursts.REQUEST) in rows for t in times for n in (1, 2, 3))
    assert len(rows) == 3 * len(times)
    opens, closes = found.warmup * 1e9, (found.warmup + found.window) * 1e9
    inside = [t for t in times if opens <= t < closes]
    assert len(inside) == found.count == 40
    # None is near the edges, where the clocks' rounding would decide.
    assert min(abs(t - edge) for t in times for edge in (opens, closes)) > 0.4e9 * found.period


def test_rate__leaves_the_processors_room(monkeypatch: pytest.MonkeyPatch) -> None:
    free = replace(SETUP, dilate=0.0)
    monkeypatch.setattr(bursts, "cores", lambda: 2)
    two = bursts.rate(free)[1]
    monkeypatch.setattr(bursts, "cores", lambda: 8)
    assert 1 <= bursts.rate(free)[1] < two


def test_settings__control_is_the_only_difference() -> None:
    with_control = simulated.settings(Cell("homa", 8).point, 100)
    without = simulated.settings(Cell("homa-free", 8).point, 100)
    assert set(with_control) ^ set(without) == {"incast_rpcs=4", "incast_rpcs=0"}
    spec = simulated.spec_of(SETUP, Cell("homa-free", 8).point, RATE)
    assert spec["set"]["incast_rpcs"] == "0"  # type: ignore[index]


@pytest.mark.parametrize("text", ["", "0", "201", "1,x", "-1"])
def test_senders__wrong(text: str) -> None:
    with pytest.raises(UsageError, match="--senders"):
        bursts.parse_senders(text)
    assert bursts.parse_senders("8, 1,8") == (1, 8)


def test_summary__of_the_most_senders_that_both_have() -> None:
    results = [
        _measured("homa", 8, 10), _measured("homa", 64, 20), _measured("homa-free", 8, 30),
        _measured("homa-free", 64, 80), _measured("tcp", 8, 50),
    ]  # fmt: skip
    rows = show.summary(results)
    assert [row["value"] for row in rows] == [4, 5] and rows[0]["sim"] == 4
    assert str(rows[0]["what"]).startswith("64 to 1")
    assert show.lost_with_control(results) == 6
    results[1] = replace(results[1], doubts=["busy"])
    assert show.summary(results)[0]["value"] is None
    assert show.lost_with_control(results) is show.lost_with_control([]) is None
    results[1] = _measured("homa", 64, None)
    assert show.summary(results)[0] == {**rows[0], "value": None, "sim": None}


def test_kept__is_what_was_measured() -> None:
    one = _measured("homa-free", 64, 30)
    assert measured.from_json(json.loads(json.dumps(one.as_json()))) == one
    assert one.ratio("p99") == 1 and _measured("tcp", 1, None).ratio("p99") is None


def test_figure__has_all_kinds_and_says_what_does_not_count(tmp_path: Path) -> None:
    results = [
        _measured(kind, n, 100.0 * n if n > 1 else None)
        for kind in bursts.KINDS
        for n in (1, 8, 64)
    ]
    results[-1] = replace(results[-1], doubts=["busy"])
    plot.paint("Title", 325_000, results, tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    for words in ("Title", "pale: does not count", "Homa without", "longest queue"):
        assert words in text


@pytest.mark.parametrize(
    ("argv", "remedy"),
    [
        (["--senders", "many"], "--senders"),
        (["--transports", "homa-flat"], "homa, homa-free, tcp"),
        (["--hosts", "4"], "alone"),
        (["--workloads", "w4"], "alone"),
    ],
)
def test_incast__wrong(cli, argv: list[str], remedy: str) -> None:
    status, _, err = cli("run", "incast", *argv)
    assert status == 2 and remedy in err
    assert cli("run", "fig3", "--senders", "8")[0] == 2


def _start(folder: Path) -> subprocess.Popen:
    argv = ["incast", "--senders", "1,3", "--dilate", "250"]
    argv += ["--messages", "150", "--transports", "homa,tcp", "--longest", "3", "--quick"]
    argv += ["--json", str(folder / "r.json"), "--plot", str(folder / "r.png")]
    return running.start(*argv)


@needs_root
@needs_bench
def test_incast__real_packets_beside_the_simulator(tmp_path: Path) -> None:
    """As many RPCs in both, none is lost; how fast they were does not matter."""
    process = _start(tmp_path)
    text = process.communicate(timeout=500)[0]
    assert process.returncode == 0, text
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["what"] == "lab-run incast" and document["where"]["kernel"]
    runs = document["runs"]
    assert [(r["cell"]["kind"], r["cell"]["senders"]) for r in runs] == [
        ("homa", 1), ("homa", 3), ("tcp", 1), ("tcp", 3),
    ]  # fmt: skip
    for one in runs:
        assert one["count"] == one["sim_count"] >= 150
        assert one["count"] % one["cell"]["senders"] == 0
        assert one["lab"]["p99"] is None and one["counts"] == (not one["doubts"])
        # Responses came through the client's port, and some met there.
        assert one["facts"]["peak_queue"] > 0
        # One sender's link is no faster than the client's, so simulated packets do not wait there.
        assert (one["facts"]["sim_peak_queue"] > 0) == (one["cell"]["senders"] > 1)
        assert one["facts"]["failed"] == 0
    assert "fewer than 1,000 RPCs" in text
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert not guardian.namespaces(f"{guardian.PREFIX}{process.pid}-")


@needs_root
@needs_bench
def test_incast__killed_leaves_nothing(tmp_path: Path) -> None:
    running.killed_leaves_nothing(_start(tmp_path), 5)
