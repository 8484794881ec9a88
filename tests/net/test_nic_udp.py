# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What is particular to UDP: ports, segmentation offload, no privileges."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from netns import Namespace, Net
from nictool import PROGRAM, Tool, pick

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="makes network namespaces, so it needs root"
)
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

tool = Tool("udp")


@pytest.fixture
def pair():
    with Net() as net:
        yield net.pair()


@needs_root
def test_port__usual_then_ephemeral(pair) -> None:
    a, _ = pair
    one = tool.start(a, "echo")
    assert one.info["address_port"] == 54321 and not one.info["ephemeral"]
    two = tool.start(a, "echo")
    assert two.info["address_port"] not in (0, 54321) and two.info["ephemeral"]
    # Both are reached: a peer is an address and a port.
    for server in (one, two):
        got = tool.run(a, "--count", "100", "ping", a.v4, str(server.info["address_port"]))
        assert pick(got, "ping")[0]["received"] == 100
    for server in (one, two):
        assert pick(server.stop(), "stats")[0]["rx_packets"] == 100


@needs_root
def test_port__a_taken_one_that_was_asked_for(pair) -> None:
    a, _ = pair
    server = tool.start(a, "--port", "7000", "echo")
    got = tool.run(a, "--port", "7000", "info")
    assert pick(got, "refused")[0]["error"] == "EADDRINUSE"
    assert "7000" in pick(got, "end")[0]["stderr"]
    server.stop()


@needs_root
def test_address__bound_to_one(pair) -> None:
    a, b = pair
    server = tool.start(b, "--address", b.v4, "echo")
    assert (server.info["address"], server.info["mtu"]) == (b.v4, 1492)
    assert pick(tool.run(a, "--count", "10", "ping", b.v4), "ping")[0]["received"] == 10
    got = tool.run(a, "--count", "10", "--seconds", "1", "ping", b.v6)
    assert pick(got, "ping")[0]["received"] == 0
    server.stop()
    assert pick(tool.run(a, "--address", b.v4, "info"), "refused")[0]["error"] == "EADDRNOTAVAIL"


@needs_root
def test_address__without_ipv6(pair) -> None:
    a, b = pair
    for space in (a, b):
        space.run(["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"])
    server = tool.start(b, "echo")
    assert pick(tool.run(a, "--count", "10", "ping", b.v4), "ping")[0]["received"] == 10
    server.stop()


@needs_root
def test_address__link_local(pair) -> None:
    a, b = pair
    shown = json.loads(b.ip("-j", "address", "show", "dev", "eth0"))[0]["addr_info"]
    link_local = [i["local"] for i in shown if i["family"] == "inet6" and i["scope"] == "link"][0]
    server = tool.start(b, "echo")
    got = tool.run(a, "--interface", "eth0", "--count", "10", "ping", link_local)
    assert pick(got, "ping")[0]["received"] == 10
    server.stop()


def bulk(
    a: Namespace,
    b: Namespace,
    to: str,
    *words: str,
    size: int = 1400,
    count: int = 3000,
    arrive: bool = True,
) -> tuple[dict, dict, dict]:
    """Send bulk; statistics of sender and receiver, and the sender's opening."""
    expect = ["--count", str(count), "--seconds", "20"] if arrive else []
    server = tool.start(b, *[w for w in words if w == "--no-offload"], *expect, "sink")
    got = tool.run(
        a, *words, "--size", str(size), "--count", str(count), "--window", "300", "bulk", to
    )
    return (
        pick(got, "stats")[0],
        pick(server.wait() if arrive else server.stop(), "stats")[0],
        pick(got, "open")[0],
    )


@needs_root
@pytest.mark.parametrize("size", [0, 40, 1000, 1388])
def test_offload__packets_stay_packets(pair, size: int) -> None:
    a, b = pair
    for to in (b.v4, b.v6):
        sender, receiver, info = bulk(a, b, to, size=size)
        assert info["max_segs"] == 64
        assert sender["tx_packets"] == 3000 and sender["tx_errors"] == 0
        assert sender["syscalls"] < 100  # 46 bundles of 64 and less than 10 batches
        assert receiver["rx_packets"] == 3000
        assert receiver["rx_malformed"] == 0
        assert 2900 <= sender["tx_gso"] <= 3000 and 0 < receiver["rx_gro"] <= 3000


@needs_root
def test_offload__contents_are_kept(pair) -> None:
    """Sizes differ inside a batch only in the last packet: split and merged without a seam."""
    a, b = pair
    server = tool.start(b, "--count", "200", "--seconds", "10", "dump")
    tool.run(a, "--size", "700", "--count", "200", "--window", "200", "bulk", b.v4)
    packets = pick(server.wait(), "packet")
    assert [p["len"] for p in packets] == [756] * 200
    assert [p["id"] for p in packets] == [2 * i for i in range(200)]
    assert len({p["hash"] for p in packets}) == 200  # only the ids differ


@needs_root
def test_offload__switched_off(pair) -> None:
    a, b = pair
    sender, receiver, info = bulk(a, b, b.v4, "--no-offload")
    assert info["max_segs"] == 1 and "no GSO" in info["detail"]
    assert sender["syscalls"] >= 3000 / 32
    assert receiver["rx_packets"] == 3000
    assert sender["tx_gso"] == receiver["rx_gro"] == 0


@needs_root
def test_offload__one_packet_at_a_time_is_not_joined(pair) -> None:
    a, b = pair
    server = tool.start(b, "echo")
    got = tool.run(a, "--count", "200", "--window", "1", "ping", b.v4)
    assert pick(got, "ping")[0]["received"] == 200
    for stats in (pick(got, "stats")[0], pick(server.stop(), "stats")[0]):
        assert stats["tx_packets"] >= 200 and stats["tx_gso"] == stats["rx_gro"] == 0


@needs_root
def test_offload__refused_by_the_device(pair) -> None:
    """Without checksum offload kernels before 6.11 refuse GSO with EIO: it must go on without. Later ones cut
    by themselves (there nic_udp_errors.c alone has the refusal)."""
    a, b = pair
    for space in (a, b):
        space.run(["ethtool", "-K", "eth0", "tx", "off"])
    sender, receiver, _ = bulk(a, b, b.v4)
    assert sender["tx_packets"] == 3000 and sender["tx_errors"] == 0
    assert receiver["rx_packets"] == 3000
    assert sender["tx_gso"] in (0, 3000)


@needs_root
def test_offload__bundle_above_the_path_mtu_is_an_error_not_the_end_of_gso(pair) -> None:
    a, b = pair
    sender, _, _ = bulk(a, b, b.v4, size=1500, count=300, arrive=False)
    assert sender["tx_packets"] == 0 and sender["tx_errors"] == 300
    sender, _, _ = bulk(a, b, b.v4, size=1400, count=3000)
    assert sender["tx_packets"] == 3000


@needs_root
def test_full__a_slow_device_pushes_back(pair) -> None:
    """A shaped interface fills the socket buffer: packets wait, none is lost on our side."""
    a, b = pair
    a.run(
        [
            "tc",
            "qdisc",
            "add",
            "dev",
            "eth0",
            "root",
            "tbf",
            "rate",
            "100mbit",
            "burst",
            "20k",
            "limit",
            "60m",
        ]
    )
    server = tool.start(b, "--no-offload", "--count", "12000", "--seconds", "20", "sink")
    got = tool.run(
        a, "--no-offload", "--size", "1400", "--count", "12000", "--window", "300", "bulk", b.v4
    )
    stats = pick(got, "stats")[0]
    assert stats["tx_packets"] == 12000 and stats["tx_errors"] == 0 and stats["tx_full"] > 0
    assert pick(server.wait(), "stats")[0]["rx_packets"] == 12000


def test_rootless__loopback_without_any_privilege() -> None:
    """What an ordinary user has: no namespace, no capability, just loopback."""
    server = subprocess.Popen([str(PROGRAM), "--address", "127.0.0.1", "--port", "0", "echo"],
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert server.stdout
    try:
        info = json.loads(server.stdout.readline())
        command = [
            str(PROGRAM),
            "--address",
            "127.0.0.1",
            "--count",
            "200",
            "ping",
            "127.0.0.1",
            str(info["address_port"]),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        ping = [json.loads(line) for line in done.stdout.splitlines() if '"ping"' in line][0]
        assert ping["received"] == 200
    finally:
        server.terminate()
        server.wait()
