# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What lab/vm/bench makes of numbers; no guest is started."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.demo.report import Run, SizeRow
from lab.errors import UsageError
from lab.vm import VmError
from lab.vm.bench import cli, counting, glue, hosts, loads, profile, streams, timing
from lab.vm.bench.parts import part_of
from lab.vm.bench.symbols import Function, Symbols

KALLSYMS = """\
ffffffff81000000 T tcp_sendmsg
ffffffff81000100 T __x64_sys_sendto
ffffffff81000200 t schedule
ffffffffc0000000 t homa_rx\t[homa]
ffffffffc0000080 t homa_rx\t[other]
"""
PLUGIN = """\
block ffffffff81000000 10 4
block ffffffff81000010 5 2
block ffffffffc0000004 8 2
call ffffffff81000010 ffffffffc0000000 2
block ffffffffc0000000 3 2
count 72 9
block ffffffff81000200 7 2
count 14 1
"""


def test_symbols__function_of_an_address() -> None:
    symbols = Symbols(KALLSYMS)
    assert symbols.find(0xFFFFFFFF81000000).name == "tcp_sendmsg"
    assert symbols.find(0xFFFFFFFF810000FF).name == "tcp_sendmsg"
    assert symbols.find(0xFFFFFFFFC0000081) == Function(0xFFFFFFFFC0000080, "homa_rx", "other")
    assert symbols.find(0x1000).name == "?"


def test_symbols__as_a_guest_tells_them() -> None:
    packed = base64.b64encode(gzip.compress(KALLSYMS.encode())).decode()
    symbols = Symbols.from_output(f"RESULT {{}}\n@@symbols {packed}\n")
    assert symbols.find(0xFFFFFFFF81000100).name == "__x64_sys_sendto"
    for broken in ("nothing", f"@@symbols {packed[:40]}", "@@symbols !"):
        with pytest.raises(VmError, match="symbols"):
            Symbols.from_output(broken)


def test_profile__instructions_calls_and_callers_per_rpc() -> None:
    first, second = profile.sections(PLUGIN.splitlines())
    assert (first.kernel, first.user, second.kernel) == (72, 9, 14)
    first.rpcs = 2
    rows = {row.function.name: row for row in profile.functions(first, Symbols(KALLSYMS))}
    assert (rows["tcp_sendmsg"].instructions, rows["tcp_sendmsg"].calls) == (25, 2)
    assert (rows["homa_rx"].instructions, rows["homa_rx"].calls) == (11, 1)
    assert rows["homa_rx"].callers == {"tcp_sendmsg": 1}
    assert sum(row.instructions for row in rows.values()) == 36
    assert profile.by_part(list(rows.values())) == {"TCP": 25, "homa.ko": 11}


@pytest.mark.parametrize(
    ("name", "module", "part"),
    [
        ("tcp_ack", "", "TCP"),
        ("schedule", "", "wake-up and schedule"),
        ("kmem_cache_alloc_node", "", "skb and slab"),
        ("ip_rcv_core", "", "IP in"),
        ("ip_finish_output2", "", "IP out"),
        ("tcp_like", "homa", "homa.ko"),
        ("veth_xmit", "veth", "veth and softirq"),
        ("no_such_thing_at_all", "", "other"),
    ],
)
def test_part(name: str, module: str, part: str) -> None:
    assert part_of(Function(0, name, module)) == part


def test_counting__tcp_goes_before_the_module_and_once_more_after_it() -> None:
    text = counting.script(counting.CASES, "default", Path("homa.ko"), profile=True)
    rows = text.splitlines()
    loaded = rows.index(f"insmod /{hosts.MODULE}")
    homa = [n for n, row in enumerate(rows) if "--proto homa" in row]
    tcp = [n for n, row in enumerate(rows) if "--proto tcp" in row]
    assert homa and min(homa) > loaded
    assert [n for n in tcp if n < loaded] and [n for n in tcp if n > max(homa)]
    assert all("--mark" in rows[n] for n in homa + tcp)
    alone = counting.script(counting.CASES, "default", None, profile=False)
    assert "insmod" not in alone and "--proto homa" not in alone and "kallsyms" not in alone


def test_hosts__what_a_guest_says() -> None:
    line = json.dumps({"label": "tcp_1", "count": 5})
    said = hosts.parse(f"OFFLOADS tso: on\nRESULT {line}\nFAILED --proto homa\nnoise\n")
    assert said.results == [{"label": "tcp_1", "count": 5}]
    assert (said.offloads, said.failed) == ("tso: on", ["FAILED --proto homa"])


def _times(lower: bool = True) -> timing.Times:
    group = timing.groups("rtt" if lower else "rate", 1.0)[0]
    return timing.Times(
        group,
        {
            "tcp": [10.0, 20.0],
            "tcp_same": [20.0, 10.0],
            "tcp_poll": [4.0, 40.0],
            "homa": [5.0, 20.0],
            "homa_same": [8.0, None],
        },
    )


def _run(transport: str, short: float, whole: float | None) -> Run:
    rows = [SizeRow(8, 300, 1056, short / 2, short, None, None)]
    return Run(transport, 49152, rows, SizeRow(8, 10**6, 10490, 1.0, whole, None, None), *[0] * 7)


def test_loads__ratios_of_the_shortest_and_of_all() -> None:
    """TCP's short messages to Homa's, and all of Homa's to TCP's, each in one round."""
    ours = [_run("homa", 600.0, 1e6), _run("homa", 500.0, 2e6), _run("homa", 500.0, None)]
    theirs = [_run("tcp", 12_000.0, 8e5), _run("tcp", 15_000.0, 1e6), _run("tcp", 500.0, 1e6)]
    found = loads.Loads({"homa": ours, "tcp": theirs})
    assert found.ratios("tcp") == [20.0, 30.0, 1.0]
    assert found.ratios_of_all("tcp") == [1.25, 2.0]
    assert found.ratios_of_all("tcp-pool") == []


def test_times__ratios_are_within_a_round() -> None:
    times = _times()
    assert times.blocking() == ["tcp", "tcp_same"]
    assert times.ratios("homa", times.blocking()) == [0.5, 2.0]
    assert times.ratios("homa", ["tcp"]) == [0.5, 1.0]
    assert times.ratios("homa_same", times.blocking()) == [0.8]
    assert times.best_ratios(times.blocking()) == [0.5, 2.0]
    assert times.best_ratios(times.tcp()) == [1.25, 2.0]
    faster = _times(lower=False)
    assert faster.best_ratios(faster.blocking()) == [0.4, 1.0]


@pytest.mark.parametrize("part", ["rtt", "rate", "bulk"])
def test_times__what_homa_may_do_tcp_may_do(part: str) -> None:
    for group in timing.groups(part, 1.0):
        keys = {case.key for case in group.cases}
        assert {*group.plain} <= keys
        ours = [case for case in group.cases if case.is_homa]
        theirs = [case for case in group.cases if not case.is_homa]
        polls = any(("poll_usecs", str(timing.POLL_USECS)) in case.settings for case in ours)
        assert polls == any(str(timing.POLL_USECS) in case.options for case in theirs)
        for word in ("spin", "--client-cpu"):
            assert any(word in c.options for c in ours) == any(word in c.options for c in theirs)
        for case in theirs:
            assert (case.key in group.blocking) == ("--wait" not in case.options)


def test_times__every_case_is_in_the_script_as_often_as_there_are_rounds() -> None:
    part = timing.groups("bulk", 1.0)
    rows = timing.script(part, 3, "off", Path("homa.ko")).splitlines()
    labels = [row.split("--label ")[-1].split()[0] for row in rows if "--label" in row]
    assert len(labels) == len(set(labels)) == 3 * sum(len(group.cases) for group in part)


def test_glue__code_is_what_is_neither_empty_nor_comment(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("/* one\n * two\n */\n\nint a;\n// three\nint b; /* four */\n")
    (tmp_path / "a.txt").write_text("int c;\n")
    assert glue.lines(tmp_path) == 2


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (cli.Wish(""), "icount"),
        (cli.Wish("fast"), "icount"),
        (cli.Wish("icount", kernel="2.4"), "--kernel 2.4"),
        (cli.Wish("icount", offloads="some"), "--offloads some"),
        (cli.Wish("rtt", rounds=0), "--rounds"),
        (cli.Wish("rtt", seconds=0), "--seconds"),
        (cli.Wish("streams", kernel="6.1"), "6.12"),
        (cli.Wish("streams", no_module=True), "needs the module"),
        (cli.Wish("cores", no_module=True), "needs the module"),
        (cli.Wish("cores", cpus="1,two"), "--cpus 1,two"),
        (cli.Wish("cores", cpus="17"), "--cpus 17"),
        (cli.Wish("cores", count=-1), "--count"),
        (cli.Wish("icount", cpus="2"), "are of cores"),
    ],
)
def test_cli__refuses_what_cannot_be_meant(wish: cli.Wish, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        cli.check(wish)


def test_streams__tcp_before_the_module_and_every_server_with_both() -> None:
    text = streams.script(loads.Plan(seconds=2), Path("homa.ko"), 2)
    before, after = text.split("insmod", 1)
    for part, transport in ((before, "tcp"), (after, "homa")):
        for server in streams.SERVERS:
            for how in ("alone", "beside"):
                assert part.count(f"STREAM {server.name} {transport} {how} ") == 2
    assert "homa-streams on" not in before
    for server in streams.SERVERS:
        assert after.count(f"homa-streams on --program {server.comm} ") == 1


def test_streams__without_the_module_or_a_rule_the_guest_ends() -> None:
    """What followed would be TCP under Homa's name. The script's commands are played by others."""
    text = streams.script(loads.Plan(seconds=2), Path("homa.ko"), 1)
    after = text[text.index("insmod") :].split("(ip netns exec h2", 1)[0]
    tools = "sleep() { :; }; ip() { :; }\n"
    for broken in ("insmod", "homa-streams"):
        played = "".join(f"{word}() {{ {'false' if word == broken else ':'}; }}\n"
                         for word in ("insmod", "homa-streams"))  # fmt: skip
        done = subprocess.run(
            ["bash", "-c", tools + played + after + "\necho went on\n"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1 and "went on" not in done.stdout, done
        assert done.stdout.startswith(f"FAILED {broken}"), done
    assert cli.rounds_of("streams") == cli.rounds_of("w4") == 1 and cli.rounds_of("rate") == 5


def test_streams__lines_of_the_guest() -> None:
    said = 'STREAM Go tcp alone {"count": 3, "p50_us": 1.5, "p99_us": 2.0}\nFAILED nginx\n'
    said += 'STREAM Go tcp alone {"count": 5, "p50_us": 2.5, "p99_us": 4.0}\n'
    done = streams._parse(said, "")
    assert [one["count"] for one in done.found["Go", "tcp", "alone"]] == [3, 5]
    assert done.median("Go", "tcp", "alone", "p99_us") == 3.0
    assert done.median("Go", "homa", "alone", "p99_us") is None
    assert done.failed == ["FAILED nginx"]
    with pytest.raises(VmError, match="nothing was measured"):
        streams._parse("FAILED nginx\n", "")


@dataclass
class Drops:
    """Stands for a Run."""

    nodes: list[int]
    drops: int = -1


def test_loads__every_transport_once_in_a_round_with_the_same_arrivals() -> None:
    plan = loads.Plan(hosts=2, seed=7, transports=("homa", "tcp"), homa_config="rtt_us=50")
    text = loads.script(plan, 2, 50_000, Path("homa.ko"), "/idle.json")
    runs = [line for line in text.splitlines() if " homa-bench node " in line]
    assert len(runs) == 2 * 2 * 2
    for number, line in enumerate(runs):
        words = line.split()
        assert words[words.index("--seed") + 1] == str(7 + number // 4)
        assert words[words.index("--transport") + 1] == ("homa", "tcp")[number // 2 % 2]
        assert ("--via" in words) == (number // 2 % 2 == 0)
        assert words[words.index("--denominators") + 1] == "/idle.json"
    ports = {line.split()[line.split().index("--bind") + 1] for line in runs}
    assert len(ports) == len(runs), "a port of the run before may still be held by the kernel"
    assert text.count("net.homa.rtt_us=50") >= 2
    without = loads.script(plan, 1, 50_000, None, "")
    assert "--transport homa" not in without and "net.homa" not in without
    assert "--denominators" not in without


def test_loads__a_run_counts_only_if_all_hosts_have_reported() -> None:
    found = loads.Loads()
    one = "LOADRESULT tcp {}\n"
    loads._collect(found, loads.Plan(hosts=3), f"DROPS 0\nnoise\n{one}{one}DROPS 4\n")
    assert (found.runs, found.failed) == ({}, [])
    loads._collect(found, loads.Plan(hosts=2), f"DROPS 0\n{one}{one}DROPS 4\n")
    assert found.runs == {}
    assert len(found.failed) == 1 and found.failed[0].startswith("tcp: homa-bench wrote no")


def test_loads__each_run_has_its_own_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads.results, "parse_load", lambda data: data)
    monkeypatch.setattr(loads.results, "combine", lambda name, buffer, nodes: Drops(nodes))
    found = loads.Loads()
    two = ["LOADRESULT homa 1\nLOADRESULT homa 2\n", "LOADRESULT tcp 3\nLOADRESULT tcp 4\n"]
    text = f"DROPS 5\n{two[0]}DROPS 5\n{two[1]}DROPS 12\n{two[0]}DROPS 13\n"
    loads._collect(found, loads.Plan(hosts=2), text)
    assert found.runs == {"homa": [Drops([1, 2], 0), Drops([1, 2], 1)], "tcp": [Drops([3, 4], 7)]}
