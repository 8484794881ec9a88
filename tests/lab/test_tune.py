# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab tune`: the arithmetic, what is refused, and a lab that is really measured."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT, needs_bench, needs_root

from lab.cluster import laboratories
from lab.errors import LabError, UsageError
from lab.net import guardian, homad
from lab.net.hosts import Host
from lab.paths import homa_bench
from lab.tune import choose, command, measure, write
from lab.tune.choose import Measured, Rate, Times

HERE = Host("", "")
FOUND = Measured(
    device="eth0",
    mtu=1500,
    link_bps=200 * 10**6,
    link_from="lab 'a'",
    polled=Times(5000, 400.0, 450.0, "homa-bench rtt polling"),
    asleep=Times(4000, 410.0, 482.5, "homa-bench rtt sleeping"),
    tcp=Rate(195.3e6, "homa-bench tcp"),
    goodput={n: Rate(bps, f"homa-bench {n}") for n, bps in ((2, 185e6), (4, 192e6), (8, 193e6))},
)


def _values(found: Measured) -> dict[str, object]:
    return {one.name: one.value for one in choose.choose(found)}


def _reason(found: Measured, name: str) -> str:
    return next(one.reason for one in choose.choose(found) if one.name == name)


def test_choose__each_setting_from_its_number() -> None:
    assert _values(FOUND) == {
        "network.interfaces": ["eth0"],
        "network.link_mbps": 200,
        "protocol.unsched_bytes": 400 * 200 // 8 + 4500,
        "protocol.max_overcommit": 4,
        "protocol.max_incoming": 4 * 14_500,
        "protocol.max_link_usage": 97,
        "threads.spin_us": 33,
    }


def test_choose__limits() -> None:
    fast = replace(FOUND, link_bps=400 * 10**9, tcp=Rate(401e9, ""))
    assert _values(fast)["protocol.unsched_bytes"] == 1_000_000
    assert _values(fast)["protocol.max_link_usage"] == 99
    slow = replace(FOUND, link_bps=10**6, tcp=Rate(0.9e6, ""))
    assert _values(slow)["protocol.unsched_bytes"] == 10_000
    assert "Kept within" in _reason(slow, "protocol.unsched_bytes")
    for asleep, spin in ((300.0, 5), (1e6, 1000)):
        times = replace(FOUND.asleep, mean_us=asleep)
        assert _values(replace(FOUND, asleep=times))["threads.spin_us"] == spin


def test_choose__no_setting_without_a_good_number() -> None:
    few = replace(FOUND, polled=replace(FOUND.polled, count=999))
    values = _values(few)
    assert values["protocol.unsched_bytes"] is None and values["threads.spin_us"] is None
    assert "protocol.max_incoming" not in values
    assert "999 round trips" in _reason(few, "protocol.unsched_bytes")
    alone = replace(FOUND, goodput={})
    assert _values(alone)["protocol.max_overcommit"] is None
    assert "processors" in _reason(replace(FOUND, tcp=Rate(150e6, "")), "protocol.max_link_usage")


def test_choose__a_link_whose_rate_nobody_says() -> None:
    unknown = replace(FOUND, link_bps=0)
    values = _values(unknown)
    assert values["network.link_mbps"] == 195 and values["protocol.max_link_usage"] is None


def test_text__has_number_and_command_for_every_setting() -> None:
    text = write.text(choose.choose(replace(FOUND, goodput={})), "Head.")
    assert tomllib.loads(text)["protocol"] == {"unsched_bytes": 14_500, "max_link_usage": 97}
    assert "n = 5,000" in text and "#   homa-bench rtt polling" in text
    assert "# max_overcommit: Not set" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_results__that_cannot_be_read() -> None:
    assert measure.times_of({"latency_ns": {"count": 0}}, "").count == 0
    for damaged in ({}, {"latency_ns": None}, {"latency_ns": {"count": 2000, "min": None}}):
        with pytest.raises(LabError, match="cannot be read"):
            measure.times_of(damaged, "")
    row = {"name": "eth0", "tx_bytes": 125_000 - 24 * 100, "tx_packets": 100}
    result = {"interfaces": [row], "time": {"window_s": 1.0}}
    assert measure.rate_of(result, "eth0", "tx_bytes", "").bps == pytest.approx(1e6)
    with pytest.raises(LabError, match="went through eth1"):
        measure.rate_of(result, "eth1", "tx_bytes", "")
    with pytest.raises(LabError, match="cannot be read"):
        measure.rate_of({**result, "time": {"window_s": 0}}, "eth0", "tx_bytes", "")


def _homad_is_built() -> bool:
    try:
        return bool(homad.program())
    except LabError:
        return False


needs_homad = pytest.mark.skipif(not _homad_is_built(), reason="homad is not built")


@needs_homad
@pytest.mark.parametrize("bps", [0, 10**6, 400 * 10**9])
@pytest.mark.parametrize("us", [0.0, 1.0, 1e9])
def test_choose__never_what_homad_refuses(bps: int, us: float) -> None:
    times = Times(1000, us, us, "")
    goodput = {n: Rate(float(bps), "") for n in (2, 4, 8)}
    found = Measured("eth0", 9000, bps, "", times, times, Rate(bps * 0.97, ""), goodput)
    write.check(write.text(choose.choose(found), ""), HERE)


@needs_homad
def test_check__says_what_homad_says() -> None:
    with pytest.raises(LabError, match="not written.*max_link_usage"):
        write.check("[protocol]\nmax_link_usage = 101\n", HERE)


def test_interface__said_and_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "class" / "net" / "eth7"
    folder.mkdir(parents=True)
    (folder / "speed").write_text("25000\n")
    (folder / "mtu").write_text("9000\n")
    peers = ["10.0.0.2:4000"]
    net = command.on_interface("eth7", peers, "", "udp", 2, tmp_path)
    assert (net.link_bps, net.mtu, net.link_from) == (25 * 10**9, 9000, "eth7")
    (folder / "speed").write_text("-1\n")
    assert command.on_interface("eth7", peers, "", "udp", 2, tmp_path).link_bps == 0
    assert command.on_interface("eth7", peers, "10gbit", "udp", 2, tmp_path).link_bps == 10**10
    for wrong in ("eth8", "../net/eth7", "..", ""):
        with pytest.raises(UsageError, match="no interface"):
            command.on_interface(wrong, peers, "", "udp", 2, tmp_path)
    with pytest.raises(UsageError, match="not ADDRESS:PORT"):
        command.on_interface("eth7", ["10.0.0.2"], "", "udp", 2, tmp_path)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["a", "--interface", "lo"], "not both"),
        (["--peer", "10.0.0.2:1"], "belong to --interface"),
        (["--interface", "lo"], "needs --peer"),
        (["--interface", "lo", "--peer", "[::1]:4000", "--via", "tcp"], "afxdp, udp"),
        (["--seconds", "nan"], "0.5 to 600"),
    ],
)
def test_cli__wrong(cli, words: list[str], remedy: str) -> None:
    status, _, err = cli("tune", *words)
    assert status == 2 and remedy in err and "Traceback" not in err


@pytest.fixture
def lab_of_three(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("HOMA_LAB_STATE", str(tmp_path / "state"))
    assert cli("up", "t", "--hosts", "3")[0] == 0
    yield "t"
    guardian.remove(laboratories.prefix_of("t"))


@needs_root
@needs_bench
@needs_homad
def test_tune__a_lab_gets_settings_that_homad_takes(cli, lab_of_three: str, tmp_path: Path) -> None:
    out, file = tmp_path / "homad.toml", tmp_path / "tune.json"
    status, _, err = cli(
        "tune", lab_of_three, "--seconds", "1", "--out", str(out), "--json", str(file)
    )
    assert status == 0, err
    write.check(out.read_text(), HERE)
    made = tomllib.loads(out.read_text())
    assert made["network"] == {"interfaces": ["eth0"], "link_mbps": 200}
    assert made["protocol"]["max_overcommit"] in measure.OVERCOMMIT
    found = json.loads(file.read_text())
    assert found["measured"]["polled"]["count"] > 0 and found["where"]["kernel"]
    assert found["measured"]["tcp"]["bps"] > 0


@needs_root
@needs_bench
@needs_homad
def test_tune__a_real_interface_by_name(lab_of_three: str, tmp_path: Path) -> None:
    """The servers run already, as on other machines, and --link says the rate."""
    here, there, _ = (Host(*host) for host in laboratories.load(lab_of_three).hosts)
    bind = f"{there.address}:4000"
    servers = []
    for transport in ("homa", "tcp"):
        words = [str(homa_bench()), "server", "--transport", transport, "--bind", bind]
        words += ["--via", "udp"] if transport == "homa" else []
        servers.append(subprocess.Popen(there.command([*words, "--quiet"])))
    out = tmp_path / "homad.toml"
    words = [sys.executable, "-m", "lab", "tune", "--interface", "eth0", "--peer", bind]
    words += ["--via", "udp", "--seconds", "1", "--link", "200mbit", "--out", str(out)]
    done = subprocess.run(
        here.command(words),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    for server in servers:
        server.terminate()
        server.wait()
    assert done.returncode == 0, done.stderr
    made = tomllib.loads(out.read_text())
    assert made["network"] == {"interfaces": ["eth0"], "link_mbps": 200}
    assert "with two peers or more" in out.read_text()
