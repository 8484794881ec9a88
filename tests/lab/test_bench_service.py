# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import io
import json
import os
import subprocess
import time

import pytest
from conftest import needs_bench, needs_root
from test_results import canned, summary

from lab import machine
from lab.bench import calls, light, results, service as bench_service, service_cases
from lab.net import homad
from lab.targets import goals as targets
from lab.bench.service import Series
from lab.errors import LabError, UsageError
from lab.net.hosts import Lab
from lab.bench.service_cases import GROUPS, RATIOS

ALL = {group.key for group in GROUPS}
BY_KEY = {group.key: group for group in GROUPS}


def one(key: str, rounds: list[dict[str, float] | None]) -> Series:
    (case,) = [case for case in service_cases.cases(ALL) if case.key == key]
    return Series(case, rounds)


def test_cases__keys_are_unique_and_every_group_has_some() -> None:
    keys = [case.key for case in service_cases.cases(ALL)]
    assert len(set(keys)) == len(keys)
    assert {case.group for case in service_cases.cases(ALL)} == ALL
    assert {case.group for case in service_cases.cases({"rtt"})} == {"rtt"}


def test_ratios__are_of_cases_that_exist_in_one_group_each() -> None:
    by_key = {case.key: case for case in service_cases.cases(ALL)}
    for ratio in RATIOS:
        mine = by_key[ratio.over]
        assert mine.transport in ("homa", service_cases.RING)
        assert ratio.metric in BY_KEY[mine.group].metrics
        for key in ratio.under:
            if key in by_key:  # a machine with one core has fewer
                assert by_key[key].group == mine.group


def test_targets__every_row_of_service_names_a_value() -> None:
    rows = [t for t in targets.load_targets() if t.command.startswith("./homa bench service ")]
    assert len(rows) >= 11
    cases = {case.key: case for case in service_cases.cases(ALL)}
    ratios = {ratio.key for ratio in RATIOS}
    for row in rows:
        kind, key, *metric = row.path.split(".")
        if kind == "ratios":
            assert key in ratios and not metric
        else:
            assert kind == "cases"
            names = {m.name for m in BY_KEY[cases[key].group].metrics}
            assert metric[0] in names | (set(calls.KINDS) if key == "homad_rtt" else set())


def test_compare__to_the_best_of_the_same_round_and_without_failed_ones() -> None:
    rows = [
        one("tcp_1_hog", [{"rate": 10.0}, {"rate": 20.0}, None]),
        one("tcp_16_hog", [{"rate": 5.0}, None, None]),
        one("homad_rate_hog", [{"rate": 30.0}, {"rate": 20.0}, {"rate": 50.0}]),
    ]
    found = bench_service.compare(rows)
    assert list(found) == ["hog_to_tcp"]
    assert found["hog_to_tcp"]["rounds"] == [3.0, 1.0]
    rows[2].rounds = [None, None, None]
    assert bench_service.compare(rows) == {}


def test_compare__a_round_trip_is_better_when_shorter() -> None:
    rows = [
        one("tcp_block", [{"median": 70.0}]),
        one("tcp_block_same", [{"median": 6.0}]),
        one("homad_rtt", [{"median": 9.0}]),
    ]
    found = bench_service.compare(rows)
    assert found["rtt_to_tcp_best"]["median"] == 1.5
    assert found["rtt_to_tcp_unpinned"]["median"] == pytest.approx(9 / 70)


def test_extract__many_applications() -> None:
    data = {**canned(), "deciles": [], "latency_ns": summary([5000, 6000, 9000])}
    data["rpcs"]["failed"] = 0
    slow = {**data, "throughput": {**data["throughput"], "rps": data["throughput"]["rps"] / 2}}
    found = bench_service.extract(BY_KEY["apps"], [data, slow])
    assert found["share"] == pytest.approx(2.0)
    assert found["rate"] == pytest.approx(1.5 * data["throughput"]["rps"])
    assert set(found) == {"rate", "share", "cpu_us"}
    found = bench_service.extract(BY_KEY["rtt"], [data])
    assert found["median"] == pytest.approx(6, rel=1e-3)


def test_extract__failures_are_not_passed_over() -> None:
    data = {**canned(), "deciles": [], "latency_ns": summary([5000])}
    data = {**data, "rpcs": {**data["rpcs"], "failed": 3}}
    with pytest.raises(LabError, match="3 RPCs failed"):
        bench_service.extract(BY_KEY["rate"], [data])
    data = {**data, "throughput": {**data["throughput"], "rps": 0}}
    with pytest.raises(LabError, match="no RPC"):
        bench_service.extract(BY_KEY["rate"], [data])


def test_check__refuses_what_cannot_be_meant() -> None:
    assert [group.key for group in bench_service.check("rate,rtt", 1, 1.0)] == ["rtt", "rate"]
    assert bench_service.check("", 1, 1.0) == list(GROUPS)
    for groups, rounds, seconds in (("x", 1, 1.0), ("rtt", 0, 1.0), ("rtt", 1, 0.0)):
        with pytest.raises(UsageError):
            bench_service.check(groups, rounds, seconds)


def test_effort__of_two_moments() -> None:
    before, after = homad.Effort(1.0, 0.5, 10), homad.Effort(3.0, 0.6, 16)
    assert after.since(before) == (pytest.approx(5.0), 3.0)
    assert homad.effort(1).sleeps > 0
    with pytest.raises(LabError):
        homad.effort(2**30)


def test_tables_and_document__a_case_that_failed_is_left_out() -> None:
    rows = [
        one("tcp_1_hog", [{"rate": 1e5, "cpu_us": 18.0}, {"rate": 2e5, "cpu_us": 17.0}]),
        one("homad_rate_hog", [None, {"rate": 3e5, "cpu_us": 5.0}]),
    ]
    rows[1].problem = "round 1: it rained"
    group = BY_KEY["hog"]
    ratios = bench_service.compare(rows)
    text = io.StringIO()
    out = bench_service.console(text)
    out.print(bench_service.group_table(group, rows))
    out.print(bench_service.ratio_table(ratios))
    assert "homad" in text.getvalue() and "300–300" in text.getvalue()
    document = bench_service.as_json([group], rows, ratios, machine.describe(), {}, 1.0)
    document = json.loads(json.dumps(document))
    assert document["cases"]["homad_rate_hog"]["rate"]["median"] == 3e5
    assert document["cases"]["homad_rate_hog"]["problem"]
    assert document["ratios"]["hog_to_tcp"]["median"] == 1.5


@needs_bench
@needs_root
def test_runner__kernel_transports_pinned_in_sessions_and_on_one_host() -> None:
    chosen = {"tcp_block_same": "rtt", "tcp_1_sessions": "sessions", "unix_packet": "local"}
    with Lab() as lab:
        runner = bench_service.Runner(lab.pair("s", 11, offloads=True), 0.1)
        for key, group in chosen.items():
            values = runner.run(one(key, []).case, BY_KEY[group])
            assert all(value > 0 for value in values.values()), key


def test_homads__one_that_died_does_not_leave_the_others_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = []

    class Fake:
        def __init__(self, host: str, *_: object) -> None:
            self.host = host

        def stop(self) -> None:
            stopped.append(self.host)
            if self.host == "a":
                raise LabError("homad died: of boredom")

    monkeypatch.setattr(homad, "Homad", Fake)
    with pytest.raises(LabError, match="boredom"), homad.homads(("a", "b")):
        pass
    assert stopped == ["a", "b"]
    with pytest.raises(LabError, match="boredom"), homad.homads(("b", "a")):
        raise LabError("no RPC was completed")
    with pytest.raises(LabError, match="no RPC"), homad.homads(("b",)):
        raise LabError("no RPC was completed")


def test_light__as_long_as_it_takes_to_have_enough_samples() -> None:
    assert light.window(2.0, 10_000) == 2.0
    assert light.window(0.1, 1_000) * 1_000 >= 1.1 * light.SAMPLES
    data = {**canned(), "deciles": [], "latency_ns": summary([5000] * light.SAMPLES)}
    data["rpcs"]["failed"] = 0
    data["generator"] = {"limited": False, "lag_ns": {"p50": 2000}, "from_send_ns": {"p50": 3000}}
    found = light.latencies(results.parse_load(data))
    assert found["median"] == pytest.approx(5, rel=1e-3)
    assert (found["late"], found["sent"], found["samples"]) == (2, 3, light.SAMPLES)
    data["latency_ns"] = summary([5000] * (light.SAMPLES - 1))
    with pytest.raises(LabError, match="too few"):
        light.latencies(results.parse_load(data))


def test_light__weighs_all_processes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [homad.Effort(1.0, 0.5, 10, 100), homad.Effort(3.0, 0.6, 2010, 300)]
    weighed = []
    monkeypatch.setattr(light, "effort", lambda *pids: weighed.append(pids) or moments.pop(0))
    scales = light.Scales(-1.0, -1.0, [7])
    scales.started([8, 9])
    with pytest.raises(LabError, match="weighed"):
        scales.values(1000)
    for _ in range(3):
        scales.tick()
    assert weighed == [(7, 8, 9)] * 2
    found = scales.values(1000)
    assert found["cpu"] == pytest.approx(5) and found["sleeps"] == pytest.approx(1)
    assert found["switches"] == pytest.approx(0.1) and 0 <= found["machine"]


def test_light__nobody_looks_before_or_after_the_window() -> None:
    later = light.Scales(time.monotonic() + 60, time.monotonic() + 70, [1])
    later.tick()
    with pytest.raises(LabError):
        later.values(1)


def test_light__without_perf_there_is_no_count() -> None:
    assert light.Counter(0.0, []).values(1000) == {}


@needs_bench
@needs_root
def test_light__tcp_is_measured_and_weighed() -> None:
    with Lab() as lab:
        runner = bench_service.Runner(lab.pair("s", 11, offloads=True), 0.1)
        values = runner.run(one("tcp_light10000", []).case, BY_KEY["light10000"])
    for name in ("median", "cpu", "samples"):
        assert values[name] > 0


def test_ring__only_what_came_back_counts() -> None:
    document = {"rps": 2e4, "latency_ns": {"p50": 30_000, "p99": 90_000}}
    assert light.ring_values(document, {"median", "p99"}) == {"median": 30.0, "p99": 90.0}
    assert light.ring_values(document, {"rate"}) == {"rate": 2e4}
    for nothing in (None, {**document, "rps": 0}):
        with pytest.raises(LabError, match="come back"):
            light.ring_values(nothing, {"rate"})
    few = {"rps": 1e3, "latency_ns": {"count": 999, "p50": 1, "p99": 2}}
    with pytest.raises(LabError, match="999"):
        light.ring_values(few, {"p99", "samples"})


@needs_bench
@needs_root
def test_light__the_ring_is_weighed_with_the_daemons_that_it_forks() -> None:
    with Lab() as lab:
        runner = bench_service.Runner(lab.pair("s", 11, offloads=True), 0.1)
        values = runner.run(one("ring_light10000", []).case, BY_KEY["light10000"])
    for name in ("median", "cpu", "samples", "sent"):
        assert values[name] > 0
    assert values["sleeps"] + values["switches"] > 0


def test_light__children_belong_to_their_parents() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in light.with_children([os.getpid()])
        assert light.with_children([child.pid]) == [child.pid]
    finally:
        child.kill()
        child.wait()


@needs_bench
@needs_root
def test_ring__messages_go_round() -> None:
    with Lab() as lab:
        runner = bench_service.Runner(lab.pair("s", 11, offloads=True), 0.5)
        for key, group in (
            ("ring_rtt", "rtt"),
            ("ring_rate", "rate"),
            ("ring_rate_sessions", "sessions"),
            ("ring_rate_hog", "hog"),
        ):
            values = runner.run(one(key, []).case, BY_KEY[group])
            assert values and all(value > 0 for value in values.values()), key


class Counting:
    """A daemon whose counters grow by the same in each look."""

    def __init__(self, requests: int, afxdp: int, udp: int) -> None:
        self.each = requests, afxdp, udp
        self.looks = 0

    def snapshot(self) -> dict:
        self.looks += 1
        requests, afxdp, udp = (self.looks * n for n in self.each)
        nics = {"afxdp": afxdp, "udp": udp}
        ports = [{"backend": kind, "nic": {"nic_syscalls": n}} for kind, n in nics.items()]
        return {"ports": [*ports, {"backend": "memory"}], "engine": {"requests_sent": requests}}


def test_calls__of_all_daemons_for_each_rpc_of_the_first() -> None:
    daemons = [Counting(1000, 1500, 100), Counting(0, 1000, 50)]
    found = calls.during(daemons, lambda: {"median": 1.0})  # type: ignore[arg-type]
    assert found == {"median": 1.0, "afxdp_calls": 2.5, "udp_calls": 0.15}
    text = calls.sentence({name: [found[name], 3.0] for name in calls.KINDS})
    assert "AF_XDP 2.50–3.00, UDP 0.15–3.00" in text


def test_calls__nothing_was_sent() -> None:
    found = calls.during([Counting(0, 5, 5)], lambda: {"median": 1.0})  # type: ignore[list-item]
    assert found == {"median": 1.0}
    assert calls.sentence({"afxdp_calls": [], "udp_calls": []}) == ""
