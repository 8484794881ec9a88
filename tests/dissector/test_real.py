# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Captures of running programs: the simulator's, and one of real datagrams between namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from netns import Net, eventually
from shark import ROOT, experts, fields, needs_tshark

BUILD = Path(os.environ.get("HOMA_BUILD") or ROOT / "build").resolve()
SIM = BUILD / "sim/homa-sim"
SERVER, CLIENT = BUILD / "examples/echo-server", BUILD / "examples/echo-client"

pytestmark = needs_tshark


def is_at(packet: dict[str, list[str]], address: str) -> bool:
    """It was captured at this host: 10.0.0.1 is interface 0."""
    return int(packet["frame.interface_id"][0]) == int(address.split(".")[3]) - 1


@pytest.mark.skipif(not SIM.exists(), reason="homa-sim is not built; ./homa build does it")
def test_simulation__every_rpc_is_followed(tmp_path: Path) -> None:
    """All packets are clean, and each RPC that a client's interface saw whole has its times."""
    capture = tmp_path / "run.pcapng"
    sim = [SIM, "--mode", "rpc", "--workload", "w3", "--load", "0.5", "--topology", "one-switch", "--hosts", "4",
           "--warmup", "0", "--measure", "300us", "--pcap", capture, "--quiet"]  # fmt: skip
    subprocess.run(sim, check=True, timeout=120)
    remarks = set().union(*experts(capture))
    assert remarks <= {"retransmit", "resend", "rpc_unknown"}
    names = ["homa.stream", "homa.id", "homa.from_client", "homa.response_time", "homa.service_time", "homa.type",
             "frame.interface_id", "homa.priority", "ip.dsfield", "ip.src", "ip.dst", "frame.time_relative"]  # fmt: skip
    rows = fields(capture, names)
    assert len(rows) > 500 and all(r["homa.type"] for r in rows)
    assert all(int(r["homa.priority"][0]) == int(r["ip.dsfield"][0], 0) >> 5 for r in rows)
    rpcs: dict[str, list[dict[str, list[str]]]] = {}
    for row in rows:
        rpcs.setdefault(row["homa.stream"][0], []).append(row)
    measured = cut = 0
    for packets in rpcs.values():
        assert len({p["homa.id"][0] for p in packets}) == 1
        told = [p for p in packets if p["homa.response_time"]]
        if not told:
            continue
        client = packets[0]["ip.src"][0]
        if not is_at(told[0], client):
            cut += 1  # the simulation ended before the response arrived
            continue
        # The capture has both ends' views: the time is the client's, from its first packet to
        # the last one of the response that reaches it.
        measured += 1
        mine = [p for p in packets if is_at(p, client)]
        came = [p for p in mine if p["ip.dst"][0] == client and p["homa.type"] == ["0x10"]]
        begin, end = (float(p["frame.time_relative"][0]) for p in (mine[0], came[-1]))
        assert len(told) == 1 and told[0] is came[-1]
        assert float(told[0]["homa.response_time"][0]) == pytest.approx(end - begin, abs=2e-9)
    assert measured > 50 and cut < 10
    assert all(float(r["homa.service_time"][0]) < 0.001 for r in rows if r["homa.service_time"])


@pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces, so it needs root")
@pytest.mark.skipif(not shutil.which("tcpdump"), reason="tcpdump is not installed")
@pytest.mark.skipif(not CLIENT.exists(), reason="the examples are not built; ./homa build does it")
def test_live__datagrams_of_real_programs(tmp_path: Path) -> None:
    """An echo over UDP, captured: the client's calls are the RPCs that tshark finds."""
    capture = tmp_path / "live.pcap"
    with Net() as net:
        client, server = net.pair()
        dump = client.start(
            ["tcpdump", "-ni", "eth0", "-U", "-w", str(capture), "--immediate-mode", "udp"]
        )
        eventually(lambda: capture.exists() and capture.stat().st_size >= 24)
        over_udp = ["env", "HOMA_VIA=udp"]
        serving = server.start([*over_udp, str(SERVER), "4000"])
        serving.line()
        for size in (100, 60000):
            client.run([*over_udp, str(CLIENT), f"{server.v4}:4000", "x" * size])
        dump.stop()
    remarks = set().union(*experts(capture))
    assert remarks <= {"retransmit", "resend", "rpc_unknown"}
    rows = fields(
        capture, ["homa.encap", "homa.stream", "homa.message_length", "homa.response_time"]
    )
    assert rows and all(set(r["homa.encap"]) == {"UDP"} for r in rows)
    assert {n for r in rows for n in r["homa.message_length"]} >= {"100", "60000"}
    assert sum(len(r["homa.response_time"]) for r in rows) == 2
