# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab run`: what is compared and how, and a small run on real packets."""

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import running
from conftest import needs_bench, needs_root

from lab.bench.histogram import Histogram
from lab.bench.results import SizeClass
from lab.cluster import (
    lateness,
    nodes,
    points,
    real_and_simulated,
    setup,
    show,
    simulated,
    stored_runs,
)
from lab.cluster import run as runs
from lab.cluster.real_and_simulated import Compared, Idle, Row
from lab.cluster.points import Point
from lab.errors import LabError
from lab.net import guardian
from lab.net.hosts import Host
from lab.net.switch import Switch as NetSwitch

SETUP = setup.Setup(
    hosts=8, link_bps=25 * 10**9, dilate=250, mtu=3000, buffer=325_000, seed=1,
    messages=12_000, longest_s=300, via="program",
)  # fmt: skip


@dataclass
class Switch:
    """A network that is none: who measures sets its rate."""

    rate_bps: int


def _shape(values: dict[int, int]) -> Histogram:
    total = sum(value * count for value, count in values.items())
    return Histogram(dict(values), sum(values.values()), total, min(values), max(values))


def _json(shape: Histogram) -> dict:
    return {
        "count": shape.count,
        "histogram": {
            "values": list(shape.counts),
            "counts": list(shape.counts.values()),
            "count": shape.count,
            "sum": shape.total,
            "min": shape.low,
            "max": shape.high,
        },
    }


def _row(lab_p99: float | None, sim_p99: float | None, idle: float = 10_000.0) -> Row:
    return Row(
        100,
        400,
        1200,
        1200,
        idle,
        idle,
        {"p50": 20e3, "p99": lab_p99},
        {"p50": 19e3, "p99": sim_p99},
    )


def _compared(transport: str, p99: float | None, levels: int = 8, load: float = 0.8) -> Compared:
    facts = {"link_bps": 1e8, "dilation": 250.0, "window_s": 10.0, "busy": 0.5, "drops": 0.0,
             "sim_drops": 0.0, "peak_queue": 1e4, "sim_peak_queue": 1e4, "sim_delay_ns": 0.0}  # fmt: skip
    rows = [_row(p99, p99) for _ in range(10)]
    label = f"{transport} {levels} {load:g}"
    return Compared(label, transport, "w4", load, levels, rows, facts)


def test_idle__is_a_line_between_sizes_and_beyond_the_last() -> None:
    idle = Idle((100, 1000, 3000), (10.0, 19.0, 59.0))
    assert idle.at(100) == 10 and idle.at(550) == 14.5 and idle.at(3000) == 59
    assert idle.at(2000) == 39 and idle.at(4000) == 79
    assert idle.at(1) == 10  # nothing is faster than the shortest that was measured
    assert Idle((100,), (10.0,)).at(5000) == 10


def test_percentiles__none_of_fewer_than_a_thousand() -> None:
    few = real_and_simulated.percentiles(_shape({1000: 999}))
    assert few == {"p50": None, "p99": None}
    # Of 1,000 values the 990th is the last of the shorter ones.
    enough = real_and_simulated.percentiles(_shape({1000: 990, 2000: 10}))
    assert enough == {"p50": 1000, "p99": 1000}
    assert real_and_simulated.percentiles(_shape({1000: 989, 2000: 11}))["p99"] == 2000


def test_slow__is_the_share_above_tcps_least_time_out() -> None:
    shape = _shape({1000: 985, 199_000_000: 10, 201_000_000: 3, 900_000_000: 2})
    assert real_and_simulated.slow_share(shape) == 0.005
    assert real_and_simulated.slow_share(_shape({900_000_000: 999})) is None
    lab = SizeClass(100, 400, 0, shape, Histogram())
    idle = Idle((100, 300), (20e3, 40e3))
    (row,) = real_and_simulated.rows_of([lab], [], idle, idle)
    assert row.slow == {"lab": 0.005, "sim": None}
    # What was kept before there was such a share is read all the same.
    document = json.loads(json.dumps(replace(_compared("tcp", 3e8), rows=[row]).as_json()))
    assert real_and_simulated.from_json(document).rows == [row]
    del document["rows"][0]["slow"]
    assert real_and_simulated.from_json(document).rows == [replace(row, slow={})]


def test_rows__lab_and_simulator_have_one_denominator() -> None:
    lab = SizeClass(100, 400, 0, _shape({60_000: 1500}), Histogram())
    sim = {"decile": 1, "latency_ns": _json(_shape({50_000: 1400}))}
    # In the middle, 200 bytes: 30 µs in the idle lab, 24 on bare wires.
    idle, wires = Idle((100, 300), (20e3, 40e3)), Idle((100, 300), (14e3, 34e3))
    (row,) = real_and_simulated.rows_of([lab], [sim], idle, wires)
    assert (row.count, row.sim_count, row.idle, row.wires) == (1500, 1400, 30e3, 24e3)
    assert row.lab["p99"] == 60_000 and row.sim["p99"] == 50_000
    assert row.ratio("p99") == pytest.approx(50 / 60)
    assert row.slowdown("lab", "p99") == 2.5
    assert row.slowdown("sim", "p99") == pytest.approx(50 / 24)
    # A tenth that the simulator does not have is no number, and no error.
    (missing,) = real_and_simulated.rows_of([lab], [], idle, wires)
    assert missing.sim == {"p50": None, "p99": None} and missing.ratio("p50") is None


def test_doubts__each_limit_is_said() -> None:
    good = {"busy": 0.6, "late_p99_ns": 1e6, "failed": 0.0}
    assert real_and_simulated.doubts_of(good, "") == []
    assert "61% busy" in real_and_simulated.doubts_of({**good, "busy": 0.61}, "")[0]
    late = {**good, "late_limit_ns": good["late_p99_ns"] - 1}
    assert "1,000 µs" in real_and_simulated.doubts_of(late, "")[0]
    assert "3 RPCs failed" in real_and_simulated.doubts_of({**good, "failed": 3.0}, "")[0]
    assert real_and_simulated.doubts_of(good, "stood still") == ["stood still"]
    assert real_and_simulated.doubts_of({**good, "host_queues": 20.0}, "") == []
    assert "one queue" in real_and_simulated.doubts_of({**good, "host_queues": 1.0}, "")[0]
    assert real_and_simulated.doubts_of({**good, "buffer_waits": 0.0}, "") == []
    assert "7 messages" in real_and_simulated.doubts_of({**good, "buffer_waits": 7.0}, "")[0]


def test_lateness__all_hosts_together() -> None:
    def host(lag: dict[int, int], short: int, late_s: float = 0.0) -> SimpleNamespace:
        tenth = SizeClass(1, 9, 0, _shape({short: 150}), Histogram())
        return SimpleNamespace(
            lag=_shape(lag), lag_p99_ns=9.0, classes=[tenth], start_late_s=late_s
        )

    # Of the first host's 100 requests two were late, of all 400 that is no P99.
    some = [host({1000: 98, 900_000: 2}, 2_000_000), *[host({1000: 100}, 2_000_000)] * 3]
    facts = lateness.facts_of(some)
    assert (facts["late_p99_ns"], facts["late_limit_ns"]) == (1000, 200_000)
    assert facts["late_max_ns"] == 900_000
    assert lateness.doubts(facts) == []
    (said,) = lateness.doubts(lateness.facts_of([some[0]]))
    assert "P99 900 µs, more than 200" in said
    # Short messages that are fast allow 100 µs all the same.
    assert lateness.facts_of([host({1000: 100}, 500)])["late_limit_ns"] == lateness.FLOOR_NS
    began = lateness.facts_of([host({1000: 100}, 500), host({1000: 100}, 500, 0.3)])
    assert lateness.doubts({**began, "window_s": 40.0}) == []
    assert "0.30 s late" in lateness.doubts({**began, "window_s": 20.0})[0]
    unknown = SimpleNamespace(**{**vars(some[1]), "lag": Histogram(), "lag_p99_ns": 5e5})
    assert lateness.facts_of([*some, unknown])["late_p99_ns"] == 5e5
    assert lateness.facts_of([]) == {} and lateness.doubts({}) == []


def test_json__says_whether_a_point_counts() -> None:
    good = _compared("homa", 30e3)
    assert good.as_json()["counts"] is True
    assert replace(good, doubts=["busy"]).as_json()["counts"] is False
    assert json.loads(json.dumps(good.as_json()))["rows"][0]["slowdown_p99"] == 3.0


def test_kept__is_what_was_measured() -> None:
    one = replace(_compared("homa", None), doubts=["busy"])
    assert real_and_simulated.from_json(json.loads(json.dumps(one.as_json()))) == one


def test_summary__of_each_figure() -> None:
    three = [_compared("homa", 20e3), _compared("tcp", 400e3)]
    (row,) = show.summary("fig3", three)
    assert row["lab"] == row["sim"] == 20 and row["paper"] == pytest.approx(19.33, abs=0.01)
    five = [_compared("homa", p99, levels) for p99, levels in ((50e3, 1), (30e3, 2), (20e3, 8))]
    assert show.summary("fig5", five)[0]["lab"] == 1.5
    assert show.summary("fig5", five[:2]) == []
    six = [
        _compared("homa", p99, load=load) for p99, load in ((40e3, 0.8), (25e3, 0.4), (20e3, 0.08))
    ]
    assert show.summary("fig6", six)[0]["lab"] == 2
    # A load with too few messages is not left out of the comparison in silence.
    assert show.summary("fig6", [*six, _compared("homa", None, load=0.04)])[0]["lab"] is None
    assert real_and_simulated.short_ratio(three, "w5", "tcp", "lab") is None


def test_points__of_each_figure() -> None:
    three = points.points_of("fig3", ("w4", "w5"), ("homa", "tcp"))
    assert [(p.transport, p.workload, p.load) for p in three] == [
        ("homa", "w4", 0.8), ("tcp", "w4", 0.8), ("homa", "w5", 0.8), ("tcp", "w5", 0.8),
    ]  # fmt: skip
    five = points.points_of("fig5", ("w5",), ("homa", "tcp"))
    assert [p.levels for p in five] == [1, 2, 4, 8, 8] and five[-1].transport == "tcp"
    six = points.points_of("fig6", ("w4",), ("homa",))
    assert [p.load for p in six] == pytest.approx([0.8, 0.4, 0.08])
    assert len({p.label for p in [*five, *six]}) == 8


@needs_bench
def test_dilation__is_the_least_that_the_processors_bear() -> None:
    w3 = [Point("homa", "w3", 0.56)]
    found = points.dilation_for(w3, 40, 25e9, 3000, 2)
    assert points.effort_of(w3[0], 40, 25e9 / found, 3000) <= points.SHARE * 2
    assert points.effort_of(w3[0], 40, 25e9 / (found / 2.5), 3000) > points.SHARE * 2
    assert points.dilation_for(w3, 8, 25e9, 3000, 2) < found
    assert points.dilation_for(w3, 2, 1e6, 3000, 64) == 1


def test_rate__is_one_that_the_simulator_takes() -> None:
    """A byte takes a whole number of ps: 25 Gbit/s, 2,000 times slower, would be 12 Mbit/s."""
    for slower in (1, 2, 5, 20, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000, 100000):
        rate, found = SETUP.diluted(slower)
        assert 8 * 10**12 % rate == 0, slower
        assert found >= min(slower, 25e9 / 1e6) and found == pytest.approx(25e9 / rate)
    assert SETUP.diluted(2000) == (10**7, 2500)
    assert SETUP.diluted(0.3) == SETUP.diluted(1)


@needs_bench
def test_window__has_the_messages_that_are_wanted() -> None:
    point = Point("homa", "w4", 0.8)
    window = SETUP.window_s(point, 10**8)
    assert window * 8 * points.rate_of(point, 1e8) == pytest.approx(12_000, rel=0.01)
    assert replace(SETUP, longest_s=5.0).window_s(point, 10**8) == 5
    assert SETUP.rate([point]) == (10**8, 250)


def test_together__is_all_hosts() -> None:
    one = SizeClass(10, 50, 1, _shape({1000: 3}), Histogram())
    other = SizeClass(5, 40, 2, _shape({3000: 1}), Histogram())

    class Node:
        def __init__(self, classes: list[SizeClass]) -> None:
            self.classes = classes

    (found,) = nodes.together([Node([one]), Node([other])])  # type: ignore[list-item]
    assert (found.size_min, found.size_max, found.failed, found.latency.count) == (5, 50, 3, 4)


def test_counted__is_what_the_engines_of_all_hosts_say() -> None:
    """homa-bench leaves out what is 0, and TCP says nothing."""
    some = [{"metrics": {"buffer_waits": 2, "tx_retransmits": 9}}, {"metrics": {"restarts": 1}}]
    hosts = [SimpleNamespace(details=details) for details in some]
    none = dict.fromkeys(nodes.COUNTED, 0.0)
    assert nodes.counted(hosts) == {**none, "buffer_waits": 2, "restarts": 1}  # type: ignore[arg-type]
    assert nodes.counted([SimpleNamespace(details={"name": "tcp"})]) == {}  # type: ignore[list-item]


def test_options__homa_in_the_program_has_buffers_for_many_long_messages() -> None:
    words = nodes.options(SETUP, Point("homa", "w5", 0.8), 10**8)
    assert words[words.index("--rcvbuf") + 1] == str(256 << 20)
    for setup_, transport in ((replace(SETUP, via="service"), "homa"), (SETUP, "tcp")):
        assert "--rcvbuf" not in nodes.options(setup_, Point(transport, "w5", 0.8), 10**8)


def test_tcp__is_the_same_program_whoever_carries_it() -> None:
    bbr, homad = Point("tcp-bbr", "w4", 0.8), Point("tcp-homad", "w4", 0.8)
    usual = nodes.options(SETUP, Point("tcp", "w4", 0.8), 10**8)
    assert nodes.options(SETUP, bbr, 10**8) == usual
    assert nodes.options(SETUP, homad, 10**8) == [*usual, "--any-source"]
    assert bbr.congestion == "bbr" and homad.congestion == "cubic"
    assert nodes.program(homad)[1:-1] == ["--tcp"] and len(nodes.program(bbr)) == 1
    assert bbr.by_kernel and not homad.by_kernel and not Point("homa", "w4", 0.8).by_kernel


def test_tcp__a_homad_that_carried_nothing_is_an_error() -> None:
    def daemon(**counters: int) -> SimpleNamespace:
        host = SimpleNamespace(address="10.9.0.2")
        return SimpleNamespace(host=host, snapshot=lambda: {"tcp": {"engine": counters}})

    nodes.carried([daemon(opened_active=0, opened_passive=3), daemon(opened_active=1)])
    with pytest.raises(LabError, match="10.9.0.2 carried no connection"):
        nodes.carried([daemon(opened_active=0, opened_passive=0)])


def test_queues__words_without_the_simulator() -> None:
    facts = {"busy": 0.25, "drops": 4.0, "peak_queue": 30e3}
    assert (
        show.queue_words(facts)
        == "processors 25% busy; drops 4, longest queue 30 KB; not simulated"
    )
    both = {**facts, "sim_drops": 5.0, "sim_peak_queue": 20e3, "sim_delay_ns": 30e3}
    assert "drops 4 (sim 5), longest queue 30 KB (sim 20); software 30.0 µs" in show.queue_words(
        both
    )


def test_again__words_have_what_a_run_says() -> None:
    tcp = {"retransmits": 9.0, "sim_retransmits": 1234.0}
    assert show.again_words({}) == show.again_words({"retransmits": 9.0}) == ""
    assert show.again_words(tcp) == "sent again 9 packets (sim 1,234)"
    timed = {**tcp, "sim_timeouts": 5.0, "sim_timeouts_undone": 3.0}
    assert show.again_words(timed).endswith("1,234, 5 time-outs, of which 3 undone)")
    homa = {**tcp, **dict.fromkeys(nodes.COUNTED, 0.0), "rx_duplicates": 6.0}
    assert "6 came twice, 0 requests started over" in show.again_words(homa)


@needs_bench
@pytest.mark.parametrize("transport", ["homa", "tcp"])
def test_simulated__says_what_was_sent_again(transport: str) -> None:
    point = Point(transport, "w4", 0.8)
    small = replace(SETUP, hosts=2, messages=100)
    idle = Idle((8, 1000), (60e3, 160e3))
    facts = simulated.run(small, point, 10**8, idle).facts
    assert facts["sim_retransmits"] >= 0 and facts["sim_drops"] >= 0
    assert ("sim_timeouts" in facts) == ("sim_timeouts_undone" in facts) == (transport == "tcp")


def test_simulated__is_the_labs_network() -> None:
    spec = simulated.spec_of(SETUP, Point("homa", "w5", 0.8, levels=2), 10**8, 3000.0)
    # 25 Gbit/s made 250 times slower, and so are the engine's times: whoever asks before he gives
    # up does so here, too.
    times = {"resend_interval_us": "1250000", "timeout_us": "60000000", "tombstone_ms": "60000"}
    times |= {"need_ack_us": "500000", "peer_idle_ms": "2500000", "max_nic_backlog_us": "1250"}
    card = {"card": "1", "known-cutoffs": "0"}
    assert spec["set"] == {"num_priorities": "2", **times, **card} and spec["shaped"] == "true"
    assert simulated.stay_s(250) > 3 * 1.25 and simulated.drain_s(2000) > simulated.stay_s(2000)
    assert spec["preset"] == "linux"
    assert simulated.settings(Point("homa", "w5", 0.8), 1.0) == ["num_priorities=8"]
    assert "resend_interval_us=10000000" in simulated.settings(Point("homa", "w5", 0.8), 25_000)
    assert (spec["hosts"], spec["link"], spec["port-buffer"]) == (8, "100mbit", "325000")
    # 100 us, but never less than the shortest frame.
    assert spec["htb-burst"] == "100000ns"
    slow = simulated.spec_of(SETUP, Point("homa", "w2", 0.8), 4 * 10**6)
    assert slow["htb-burst"] == "168000ns"
    assert spec["send-delay"] == spec["receive-delay"] == "1500ns"
    tcp = simulated.spec_of(SETUP, Point("tcp-pool", "w5", 0.8), 10**8)
    assert tcp["protocol"] == "tcp"
    linux = {"sack": "1", "rto-min": "200000", "ack-delay": "40000"}
    linux |= {"undo": "1", "cubic": "1", "idle-restart": "0"}
    assert tcp["set"] == {**linux, "turns": "1"}


@needs_bench
def test_alone__short_messages_meet_no_others() -> None:
    """Of a byte 10 % of payload are more packets than the link carries: they waited for each other."""
    homa = Point("homa", "", 0.0)
    wires = [simulated.alone(SETUP, homa, 10**8, size, False) for size in (1, 8, 64, 1000)]
    assert wires == sorted(wires) and wires[0] < 60_000
    assert simulated.alone(SETUP, homa, 10**8, 1) < 1000


def test_figure__is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "f.svg"
    doubted = replace(_compared("tcp", 400e3), doubts=["busy"])
    show.plot.paint("Title", [_compared("homa", 20e3), doubted], file)
    text = file.read_text()
    assert "W4" in text and "tcp 8 0.8" in text and "does not count" in text


@pytest.mark.parametrize(
    ("argv", "remedy"),
    [
        (["fig4"], "fig3, fig5, fig6"),
        (["fig5", "--workloads", "w4"], "choose from w5"),
        (["fig3", "--transports", "dctcp"], "choose from homa, tcp"),
        (["fig3", "--hosts", "41"], "2 to 40"),
        (["fig3", "--dilate", "0.5"], "1 to 100000"),
        (["fig3", "--messages", "1"], "100 to"),
        (["fig3", "--via", "kernel"], "program, service"),
        (["fig3", "--plot", "x.txt"], ".svg"),
        (["fig3", "--buffer", "ten"], "48kb"),
    ],
)
def test_run__wrong(cli, argv: list[str], remedy: str) -> None:
    status, _, err = cli("run", *argv)
    assert status == 2 and remedy in err


def _start(folder: Path, transports: str) -> subprocess.Popen:
    argv = ["fig3", "--hosts", "2", "--workloads", "w4"]
    argv += ["--dilate", "100", "--messages", "100", "--transports", transports]
    argv += ["--keep", str(folder / "kept")]
    argv += ["--json", str(folder / "r.json"), "--plot", str(folder / "r.png")]
    return running.start(*argv)


@needs_root
@needs_bench
@pytest.mark.parametrize(
    "transports",
    ["homa", "tcp-homad", *(pytest.param(t, marks=pytest.mark.long) for t in ("tcp", "tcp-bbr"))],
)
def test_run__real_packets_beside_the_simulator(tmp_path: Path, transports: str) -> None:
    """The same arrivals in both: as many messages of each tenth, and none is lost."""
    process = _start(tmp_path, transports)
    text = process.communicate(timeout=500)[0]
    assert process.returncode == 0, text
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["where"]["kernel"] and document["setup"]["hosts"] == 2
    (point,) = document["points"]
    counts = [row["count"] for row in point["rows"]]
    assert len(counts) == 10 and sum(counts) >= 100
    simulated_ = Point(transports, "w4", 0.8).simulated
    assert [row["sim_count"] for row in point["rows"]] == (counts if simulated_ else [0] * 10)
    assert ("not simulated" in text) is not simulated_
    assert all(row["lab"]["p99"] is None and row["idle"] > 0 for row in point["rows"])
    assert point["facts"]["dilation"] == 100 and 0 < point["facts"]["busy"] <= 1.05
    assert "fewer than 1,000 messages" in text
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert not guardian.namespaces(f"{guardian.PREFIX}{process.pid}-")


def test_run__goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points that count are not measured again, those that do not are."""
    monkeypatch.setattr(stored_runs, "build", lambda: "programs")
    monkeypatch.setattr(nodes, "switched", lambda lab, steps, setup, hosts, rate: Switch(rate))
    monkeypatch.setattr(setup.Setup, "rate", lambda self, some: (10**8, 250.0))
    measured: list[str] = []

    def point(_setup, _switch, one: Point, *_: object) -> Compared:
        measured.append(one.transport)
        doubts = ["busy"] if one.transport == "tcp" else []
        return replace(_compared(one.transport, 30e3), label=one.label, doubts=doubts)

    monkeypatch.setattr(runs, "_point", point)
    monkeypatch.setattr(runs, "_seconds", lambda *_: 1.0)
    some = points.points_of("fig3", ("w4", "w5"), ("homa", "tcp"))
    for _ in range(2):
        told: list[Compared] = []
        found = runs.measure(SETUP, some, stored_runs.open_folder(tmp_path, SETUP), told.append)
        assert found == told and [one.label for one in found] == [p.label for p in some]
    assert measured == ["homa", "tcp", "homa", "tcp", "tcp", "tcp"]


@needs_root
@needs_bench
def test_run__killed_leaves_nothing(tmp_path: Path) -> None:
    running.killed_leaves_nothing(_start(tmp_path, "tcp"), 3)


def test_idle__messages_meet_none_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even their predecessors, which take their time on a link after they have come."""
    asked: list[list[str]] = []

    def run_jobs(jobs: list, *_: object) -> list:
        asked.append(jobs[1].argv)
        rows = [{"size": s, "count": 50, "p50_ns": 1e5, "p99_ns": 2e5} for s in runs.IDLE_SIZES]
        return [None, {"schema": "homa-bench/1", "complete": True, "unloaded": rows}]

    monkeypatch.setattr(runs, "run_jobs", run_jobs)
    hosts = [Host("none", f"10.9.0.{n}") for n in (1, 2)]
    for rate in (5 * 10**6, 800 * 10**6):
        switch = NetSwitch("none", rate, 325_000, True, [], hosts)
        idle = runs.idle_times(SETUP, switch, Point("tcp", "w2", 0.1), lambda: None)
        assert idle.sizes == runs.IDLE_SIZES and idle.times[0] == 1e5
        words = asked[-1]
        pause_s = float(words[words.index("--pause") + 1]) / 1e6
        # A full packet with all that it takes on a cable, and what follows it.
        assert pause_s * rate / 8 >= 2 * (3000 + 14 + 24)
