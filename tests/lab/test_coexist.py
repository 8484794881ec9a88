# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run coexist`: the grid, its arithmetic, what does not count, and a tiny run."""

import json
import os
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import running
from conftest import needs_bench, needs_root

from lab.bench.histogram import Histogram
from lab.bench.results import SizeClass
from lab.cluster import stored_runs
from lab.cluster.busy import Watch
from lab.cluster.setup import Setup
from lab.coexist import grid, measured, plot, shares, show, streams
from lab.coexist.grid import Cell
from lab.coexist.measured import Measured
from lab.coexist.shares import Times
from lab.errors import LabError, UsageError
from lab.net import guardian
from lab.net.hosts import Host

SETUP = Setup(
    hosts=4, link_bps=25 * 10**9, dilate=250, mtu=3000, buffer=325_000, seed=1,
    messages=12_000, longest_s=300, via="program",
)  # fmt: skip
HOSTS = [Host(f"space{n}", f"10.9.0.{n}") for n in range(1, 6)]


def _shape(values: dict[int, int]) -> Histogram:
    total = sum(value * count for value, count in values.items())
    return Histogram(dict(values), sum(values.values()), total, min(values), max(values))


def _times(p99_ns: float | None, count: int = 1200) -> Times:
    slow = None if p99_ns is None else p99_ns / 10_000
    return Times(50, 400, count, 12_000, p99_ns, 1.2, slow)


def _measured(
    kind: str, stream: int, p99_us: float | None, lost: float | None = None, rpc: int = 30
) -> Measured:
    facts = {"link_bps": 1e8, "dilation": 250.0, "window_s": 10.0, "busy": 0.4}
    p99 = None if p99_us is None else p99_us * 1e3
    if stream:
        facts["streams_share"] = stream / 100
    must = 0.01 if stream else None
    carried = stream * 1e6 if stream else None
    tenths = [_times(None if p99 is None else p99 * (1 + n)) for n in range(10)]
    return Measured(
        Cell("w4", kind, rpc, stream), tenths, _times(p99), carried, lost, must, dict(facts)
    )


def test_lost__is_against_the_streams_alone() -> None:
    assert shares.lost(30e6, 40e6) == 0.25
    assert shares.lost(42e6, 40e6) == pytest.approx(-0.05)  # more than alone is no loss, and shown
    assert shares.lost(None, 40e6) is None and shares.lost(30e6, 0) is None


def test_unavoidable__is_what_the_wire_has_no_room_for() -> None:
    # Of 3,038 bytes of a full packet on a cable 2,948 are data.
    assert shares.data_share(3000) == pytest.approx(2948 / 3038)
    assert shares.unavoidable(0.4, 0.35, 3000) == 0
    # RPCs take 60 % of the wire: 40 % are left, of which 97 % can be data.
    assert shares.unavoidable(0.5, 0.6, 3000) == pytest.approx(1 - 0.4 * 2948 / 3038 / 0.5)
    assert shares.unavoidable(0.1, 1.3, 3000) == 1
    assert shares.unavoidable(0, 0.9, 3000) == 0


def test_short__is_a_fifth_of_the_messages_and_no_percentile_of_few() -> None:
    tenth = SizeClass(50, 300, 0, _shape({1000: 600}), _shape({1500: 600}))
    second = SizeClass(300, 400, 0, _shape({3000: 400}), _shape({2500: 400}))
    third = SizeClass(400, 900, 0, _shape({90_000: 5000}), _shape({9000: 5000}))
    found = shares.short([tenth, second, third])
    assert (found.size_low, found.size_high, found.count) == (50, 400, 1000)
    assert (found.p50_ns, found.slowdown_p99) == (1000, 2.5)
    assert found.p99_ns == 3000
    few = shares.short([tenth, replace(second, latency=_shape({3000: 399}))])
    assert (few.count, few.p50_ns, few.p99_ns) == (999, None, None)


def test_simulated__short_ones_of_the_deciles() -> None:
    shape = {
        "values": [2000],
        "counts": [600],
        "count": 600,
        "sum": 1_200_000,
        "min": 2000,
        "max": 2000,
    }
    rows = [
        {
            "size_min": 10 * n,
            "size_max": 10 * n + 9,
            "latency_ns": {"count": 600, "histogram": shape},
        }
        for n in range(10)
    ]
    found = shares.simulated(rows)
    assert (found.size_low, found.size_high, found.count) == (0, 19, 1200)
    assert found.p99_ns == pytest.approx(2000, rel=0.001) and found.slowdown_p99 is None
    assert shares.simulated(rows[:1]).p99_ns is None and shares.simulated([]).count == 0


def test_plan__is_the_talks_grid_and_what_it_is_compared_with() -> None:
    cells = grid.plan(grid.WORKLOADS, grid.LOADS, grid.LOADS, tuple(grid.KINDS), False)
    assert len(cells) == len(set(cells))
    beside = [cell for cell in cells if cell.rpc and cell.stream]
    assert all(cell.published and cell.rpc + cell.stream <= 100 for cell in beside)
    homa = {(c.workload, c.rpc, c.stream) for c in beside if c.kind == "homa"}
    # Counted by hand in the slides' table, without its two rows' cells of 70 by 40.
    assert len(homa) == 18 + 24 + 20 + 13 + 10 + 7
    assert ("w1", 10, 10) in homa and ("w1", 10, 30) not in homa and ("w5", 10, 10) not in homa
    assert ("w2", 50, 10) in homa and ("w2", 50, 30) not in homa
    for kind in ("homa-flat", "homa-shared", "tcp"):
        assert {(c.workload, c.rpc, c.stream) for c in beside if c.kind == kind} == homa
    for index, cell in enumerate(cells):
        if cell.rpc and cell.stream:
            earlier = cells[:index]
            assert grid.alone(cell) in earlier
            assert Cell(cell.workload, cell.kind, cell.rpc, 0) in earlier
    # No cell is there only to be compared with a cell that is not.
    assert Cell("w1", "", 0, 30) not in cells and Cell("w3", "homa", 70, 0) in cells


def test_plan__whoever_names_loads_gets_them() -> None:
    assert not grid.plan(("w5",), (10,), (20,), ("homa",), False)
    cells = grid.plan(("w5",), (10,), (20, 90, 95), ("homa",), True)
    assert cells == [
        Cell("w5", "", 0, 20),
        Cell("w5", "", 0, 90),
        Cell("w5", "homa", 10, 0),
        Cell("w5", "homa", 10, 20),
        Cell("w5", "homa", 10, 90),
    ]
    assert not any(cell.published for cell in cells)


@pytest.mark.parametrize("text", ["", "x", "10,x", "0", "91", "-5", "1.5"])
def test_loads__wrong(text: str) -> None:
    with pytest.raises(UsageError, match="--rpc"):
        grid.parse_loads(text, "--rpc")
    assert grid.parse_loads(" 40%, 10,40", "--rpc") == (10, 40)


def test_plan__streams_by_homad_are_compared_with_those_alone_by_homad() -> None:
    cells = grid.plan(("w4",), (30,), (10, 40), ("homa-shared", "tcp"), True)
    lone = [cell for cell in cells if not cell.rpc]
    assert lone == [
        Cell("w4", "homa-shared", 0, 10), Cell("w4", "homa-shared", 0, 40),
        Cell("w4", "", 0, 10), Cell("w4", "", 0, 40),
    ]  # fmt: skip
    assert grid.alone(Cell("w4", "homa-shared", 30, 40)) == lone[1]
    assert grid.alone(Cell("w4", "tcp", 30, 40)) == lone[3]
    assert [cell.kind for cell in grid.plan(("w4",), (30,), (40,), ("homa",), True)][0] == ""
    found = [Measured(lone[1], carried=40e6), Measured(lone[3], carried=30e6)]
    assert measured.loss_of(Cell("w4", "homa-shared", 30, 40), 30e6, found) == 0.25
    assert measured.loss_of(Cell("w4", "tcp", 30, 40), 30e6, found) == 0


@needs_bench
def test_rate__is_one_for_all_cells_and_counts_the_streams() -> None:
    some = [Cell("w4", "", 0, 70), Cell("w4", "homa", 30, 0), Cell("w4", "homa", 30, 70)]
    assert grid.rate(some, SETUP) == (10**8, 250)
    free = replace(SETUP, dilate=0.0)
    most = grid.effort(some[2], free, 1e8)
    assert most == pytest.approx(grid.effort(some[0], free, 1e8) + grid.effort(some[1], free, 1e8))
    assert grid.rate(some, free)[1] >= grid.rate(some[:2], free)[1] > 1


@needs_bench
def test_that_fit__leaves_out_what_fills_the_links_alone() -> None:
    # W1's messages are hardly longer than their headers.
    some = [Cell("w1", "homa", 70, 10), Cell("w5", "homa", 70, 10), Cell("w1", "", 0, 70)]
    kept, full = grid.that_fit(some, 3000)
    assert full == some[:1] and kept == some[1:]


def test_streams__load_every_link_alike_in_both_directions() -> None:
    found = streams.jobs(HOSTS, 0.3, 10**8, 100.5, 7.0)
    servers = [job for job in found if job.background]
    clients = [job for job in found if not job.background]
    assert len(servers) == 5 and len(clients) == 5 * streams.TO
    # Three streams of a tenth of 100 Mbit/s each.
    for job in servers:
        assert job.argv[job.argv.index("--pace") + 1] == "10000000"
    ends = [(job.argv[2], job.host.address) for job in clients if job.host]
    assert len(set(ends)) == len(ends) and all(a != b for a, b in ends)
    for host in HOSTS:
        assert [a for a, _ in ends].count(host.address) == streams.TO
        assert [b for _, b in ends].count(host.address) == streams.TO
    assert all(job.argv[job.argv.index("--measure-at") + 1] == "100.500000" for job in clients)
    two = streams.jobs(HOSTS[:2], 0.3, 10**8, 0, 1.0)
    assert len(two) == 4 and two[0].argv[two[0].argv.index("--pace") + 1] == "30000000"


def test_streams__by_homad_are_held_by_its_rule() -> None:
    """All of a host's streams together have their part, with the headers that homad counts."""
    found = streams.jobs(HOSTS, 0.3, 10**8, 0, 1.0, lambda address: {"HOMA_VIA": address})
    assert all(job.argv[1] == "--tcp" and "--pace" not in job.argv for job in found)
    assert all(job.host and job.env["HOMA_VIA"] == job.host.address for job in found)
    text = streams.rules(0.3, 10**8)
    assert f'send = "{30000 * streams.COUNTED:.0f} kbit/s"' in text and "[5001, 5001]" in text


def test_kept__what_counts_is_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "kept"
    store = stored_runs.Kept(folder, SETUP, "b")
    folder.mkdir(parents=True)
    one = replace(_measured("homa-shared", 40, 30, 0.01), sim_short=_times(2e4))
    what = {"cell": asdict(one.cell), "link_bps": 10**8}
    assert store.get(what) is None
    store.put(what, json.loads(json.dumps(one.as_json())))
    assert measured.from_json(store.get(what) or {}) == one
    alone = Measured(Cell("w4", "", 0, 40), carried=4e7)
    assert measured.from_json(json.loads(json.dumps(alone.as_json()))) == alone
    # Another network, other links or another build are another run.
    assert replace(store, build="c").get(what) is None
    assert replace(store, setup=replace(SETUP, hosts=5)).get(what) is None
    assert store.get({**what, "link_bps": 10**9}) is None
    store.file(what).write_text("{")
    assert store.get(what) is None
    assert stored_runs.Kept(None, SETUP, "").get(what) is None
    assert stored_runs.usual("coexist", True) is None and stored_runs.usual("coexist", False)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--keep"):
        stored_runs.open_folder(tmp_path / "file", SETUP)


def test_carried__is_the_sum_and_says_what_went_wrong() -> None:
    row = {"schema": streams.SCHEMA, "bits_per_s": 3e6, "failed": 0, "opened_at_s": 50.25}
    found = streams.carried([None, row, {**row, "bits_per_s": 1e6, "failed": 2}], 50.0)
    assert (found.bps, found.failed, found.late_s) == (4e6, 2, 0.25)
    assert found.fairness == pytest.approx(16 / (2 * 10))
    assert streams.fairness([5, 5, 5]) == 1 and streams.fairness([0, 0]) == 1
    for damaged in ([None], [{**row, "schema": "x"}], [{"schema": streams.SCHEMA}]):
        with pytest.raises(LabError, match="homa-flows"):
            streams.carried(damaged, 50.0)


def test_doubts__each_limit_is_said() -> None:
    cell, alone = Cell("w4", "homa", 30, 40), Cell("w4", "", 0, 40)
    good = {
        "busy": 0.6, "window_s": 10.0, "late_p99_ns": 1e6, "failed": 0.0, "streams_failed": 0.0,
        "streams_late_s": 0.5, "streams_share": 0.39,
    }  # fmt: skip
    before = [Measured(alone, carried=40e6)]

    def said(which: Cell, changed: dict, earlier: list = before) -> str:
        return "; ".join(measured.doubts(which, {**good, **changed}, "", earlier))

    assert said(cell, {}) == "" and said(alone, {}) == ""
    # RPCs take what the streams lose; only streams alone have to reach what they ask for.
    assert said(cell, {"streams_share": 0.2}) == ""
    assert "carried 37.0% of the links, not 40 %" in said(alone, {"streams_share": 0.37})
    for which in (cell, alone):
        assert "61% busy" in said(which, {"busy": 0.61})
        assert "2 connections" in said(which, {"streams_failed": 2.0})
        assert "0.6 s late" in said(which, {"streams_late_s": 0.6})
    assert "1,000 µs" in said(cell, {"late_limit_ns": 0.9e6})
    assert "3 RPCs failed" in said(cell, {"failed": 3.0})
    doubted = [replace(before[0], doubts=["busy"])]
    assert "alone does not count" in said(cell, {}, earlier=doubted)
    assert measured.loss_of(cell, 30e6, before) == 0.25
    assert measured.loss_of(alone, 30e6, before) is None
    assert measured.loss_of(cell, 30e6, []) is None


def test_watch__looks_into_the_window_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    clock = iter([1.0, 2.0, 3.0, 4.0, 9.0])
    idle = iter([10.0, 10.4, 11.0])
    watch = Watch(lambda: next(idle), lambda: next(clock))
    assert watch.share() == 1  # nobody looked, so nobody knows
    for _ in range(5):
        watch.look(2.0, 4.0)
    # Two seconds of two processors, of which 1.0 were idle.
    assert watch.share() == pytest.approx(0.75)
    watch.forget()
    assert watch.share() == 1


def test_summary__only_of_runs_that_count() -> None:
    results = [
        _measured("homa", 0, 30), _measured("homa", 40, 45, 0.03),
        _measured("tcp", 0, 100), _measured("tcp", 40, 900, 0.2),
    ]  # fmt: skip
    values = {str(row["what"]).split(": ")[1]: row for row in show.summary(results)}
    assert values["short P99 of Homa to the same without streams"]["value"] == 1.5
    assert values["short P99 of Homa to the same without streams"]["goal"] == 2
    assert values["short P99 of TCP RPCs to Homa"]["value"] == 20
    lost = values["share that streams lose beyond what they must"]
    assert lost["value"] == pytest.approx(0.02) and lost["goal"] == 0.05
    assert show.worst(results) == {
        "homa": {"short": 1.5, "lost": pytest.approx(0.02)},
        "homa-shared": {"short": None, "lost": None},
    }
    mine = [replace(r, cell=replace(r.cell, kind="homa-shared")) for r in results[:2]]
    assert show.worst([*results, *mine])["homa-shared"] == show.worst(results)["homa"]
    assert sum("by homad" in str(row["what"]) for row in show.summary([*results, *mine])) == 3
    results[1] = replace(results[1], doubts=["busy"])
    assert all(row["value"] is None for row in show.summary(results))
    assert show.worst(results)["homa"] == {"short": None, "lost": None}
    few = [_measured("homa", 0, None), _measured("homa", 40, 45, 0.03)]
    assert show.summary(few)[0]["value"] is None


def test_figure__has_every_cell_that_has_a_percentile(tmp_path: Path) -> None:
    results = [
        _measured(kind, stream, p99 * (1 + stream / 20), 0.01 if stream else None, rpc)
        for rpc in (10, 30)
        for kind, p99 in (("homa", 30), ("homa-flat", 60), ("tcp", 200))
        for stream in (0, 10, 40)
    ]
    results[-1] = replace(results[-1], doubts=["busy"])
    plot.paint("Title", results, tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    for words in ("Title", "pale: does not count", "RPCs 10 %", "RPCs 30 %", "Homa, 1 priority"):
        assert words in text
    plot.paint("Title", [_measured("homa", 40, None)], tmp_path / "empty.svg")
    assert "RPCs 30 %" in (tmp_path / "empty.svg").read_text()


@pytest.mark.parametrize(
    ("argv", "remedy"),
    [
        (["--workloads", "w6"], "w1, w2, w3, w4, w5"),
        (["--transports", "tcp-pool"], "homa, homa-flat, homa-shared, tcp"),
        (["--rpc", "95"], "--rpc"),
        (["--streams", "ten"], "--streams"),
        (["--rpc", "60", "--streams", "50"], "more than 100 %"),
        (["--hosts", "1"], "2 to 40"),
    ],
)
def test_coexist__wrong(cli, argv: list[str], remedy: str) -> None:
    status, _, err = cli("run", "coexist", *argv)
    assert status == 2 and remedy in err


def test_figures__have_no_streams(cli) -> None:
    status, _, err = cli("run", "fig3", "--streams", "10")
    assert status == 2 and "coexist alone" in err


def _start(folder: Path) -> subprocess.Popen:
    argv = ["coexist", "--hosts", "2", "--workloads", "w3"]
    argv += ["--rpc", "20", "--streams", "30", "--transports", "homa-shared,tcp", "--longest", "2"]
    argv += ["--dilate", "250", "--messages", "300"]
    argv += ["--json", str(folder / "r.json"), "--plot", str(folder / "r.png")]
    return running.start(*argv)


@pytest.mark.long
@needs_root
@needs_bench
def test_coexist__real_packets_and_streams(tmp_path: Path) -> None:
    """The result is whole and consistent; how fast anything was does not matter."""
    process = _start(tmp_path)
    text = process.communicate(timeout=500)[0]
    assert process.returncode == 0, text
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["what"] == "lab-run coexist" and document["where"]["kernel"]
    cells = document["cells"]
    assert [(c["cell"]["kind"], c["cell"]["rpc"], c["cell"]["stream"]) for c in cells] == [
        ("homa-shared", 0, 30), ("", 0, 30), ("homa-shared", 20, 0), ("homa-shared", 20, 30),
        ("tcp", 20, 0), ("tcp", 20, 30),
    ]  # fmt: skip
    for one in cells:
        facts, cell = one["facts"], one["cell"]
        # The simulator meets the same arrivals.
        assert (one["sim_short"] is not None) == (cell["rpc"] > 0 and not cell["stream"])
        if one["sim_short"]:
            assert one["sim_short"]["count"] == one["short"]["count"]
            assert facts["sim_completed"] == facts["completed"]
        assert facts["link_bps"] == 1e8 and 0 < facts["busy"] <= 1
        assert one["counts"] == (not one["doubts"])
        if cell["stream"]:
            # Paced by the kernel, so never more than was asked for and what waited in buffers.
            assert 0 < one["carried"] / 2e8 == pytest.approx(facts["streams_share"], rel=0.01)
            assert one["must_lose"] == 0
        if cell["rpc"] and cell["stream"]:
            alone = cells[0 if cell["kind"] == "homa-shared" else 1]
            assert one["lost"] == pytest.approx(1 - one["carried"] / alone["carried"])
        if cell["rpc"]:
            assert len(one["tenths"]) == 10
            assert one["short"]["count"] == sum(t["count"] for t in one["tenths"][:2])
            assert one["short"]["p99_ns"] is None  # of fewer than a thousand
    # The same arrivals, whoever carries them and whatever is beside them.
    counts = [[t["count"] for t in c["tenths"]] for c in cells if c["cell"]["rpc"]]
    assert sum(counts[0]) > 100 and all(row == counts[0] for row in counts)
    assert "fewer than 1,000 messages" in text and "no number of their results" in text
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert not guardian.namespaces(f"{guardian.PREFIX}{process.pid}-")


@needs_root
@needs_bench
def test_coexist__killed_leaves_nothing(tmp_path: Path) -> None:
    running.killed_leaves_nothing(_start(tmp_path), 3)
