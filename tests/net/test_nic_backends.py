# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What all packet I/O backends promise, over a real link between two namespaces."""

from __future__ import annotations

import os

import pytest
from netns import Namespace, Net, eventually
from nictool import PROGRAM, Tool, icmp_echo, pick, start_tcp_echo, tcp_echo

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces, so it needs root"),
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
]


@pytest.fixture
def pair():
    with Net() as net:
        yield net.pair()


@pytest.fixture(params=["afxdp", "packet", "udp"])
def tool(request: pytest.FixtureRequest) -> Tool:
    return Tool(request.param)


@pytest.fixture(params=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> str:
    return request.param


def test_ping__every_packet_comes_back(pair, tool: Tool, family: str) -> None:
    a, b = pair
    server = tool.start(b, "echo")
    got = tool.run(a, "--count", "3000", "--window", "8", "ping", getattr(b, family))
    ping = pick(got, "ping")[0]
    # A link of veths loses nothing, but a busy machine may overrun a ring.
    assert ping["received"] > 2900
    stats = pick(server.stop(), "stats")[0]
    assert stats["rx_packets"] == stats["tx_packets"] >= ping["received"]
    assert stats["rx_malformed"] == 0


@pytest.mark.parametrize("wait", ["block", "yield"])
def test_ping__blocking(pair, tool: Tool, wait: str) -> None:
    a, b = pair
    server = tool.start(b, "--wait", wait, "echo")
    got = tool.run(a, "--count", "300", "--wait", wait, "ping", b.v4)
    assert pick(got, "ping")[0]["received"] == 300
    server.stop()


def send_and_dump(
    tool: Tool, a: Namespace, b: Namespace, to: str, *words: str, count: int = 1
) -> tuple[list, list]:
    server = tool.start(b, "--count", str(count), "--seconds", "10", "dump")
    sent = tool.run(a, "--count", str(count), "--seconds", "0.5", *words, "send", to)
    return sent, pick(server.wait(), "packet")


def content_hash(size: int, sport: int = 40000, dport: int = 100, rpc: int = 0) -> int:
    """nic_ping's packet, summed as its dump does."""
    head = bytearray(56)
    head[0:2], head[2:4] = sport.to_bytes(2, "big"), dport.to_bytes(2, "big")
    head[11], head[12] = 0x10, 14 << 4
    head[20:28] = rpc.to_bytes(8, "big")
    head[28:32] = head[32:36] = size.to_bytes(4, "big")
    total = 0
    for byte in bytes(head) + bytes(i * 7 & 0xFF for i in range(size)):
        total = (total * 31 + byte) & 0xFFFFFFFF
    return total


@pytest.mark.parametrize("size", [0, 1, 44, 1000])
def test_packet__bytes_arrive_unchanged(pair, tool: Tool, family: str, size: int) -> None:
    a, b = pair
    _, packets = send_and_dump(tool, a, b, getattr(b, family), "--size", str(size))
    assert len(packets) == 1
    packet = packets[0]
    assert packet["len"] == 56 + size
    assert packet["hash"] == content_hash(size)
    assert packet["src"] == getattr(a, family)
    assert packet["dst"] == getattr(b, family)
    assert packet["src_port"] == (54321 if tool.backend == "udp" else 0)


def test_packet__carries_its_priority(pair, tool: Tool, family: str) -> None:
    a, b = pair
    assert icmp_echo(a, getattr(b, family))  # so that they know each other: no packet waits
    server = tool.start(b, "--count", "8", "--seconds", "10", "dump")
    for prio in range(8):
        tool.run(a, "--prio", str(prio), "--seconds", "0.01", "send", getattr(b, family))
    packets = pick(server.wait(), "packet")
    assert [p["prio"] for p in packets] == list(range(8))
    assert {p["ecn"] for p in packets} == {0}


def test_packet__header_on_the_wire(pair, tool: Tool, family: str) -> None:
    a, b = pair
    # AF_XDP takes packets before a capture sees them, so nothing else listens at b.
    words = "udp port 54321" if tool.backend == "udp" else "ip proto 146 or ip6 proto 146"
    capture = b.start(["tcpdump", "-nni", "eth0", "-c", "1", "-U", "-x", "--immediate-mode", words])
    while "listening" not in (capture.stderr.line(10) or "listening"):
        pass
    tool.run(a, "--prio", "5", "--seconds", "0.5", "--size", "10", "send", getattr(b, family))
    _, out, _ = capture.wait(timeout=10)
    dump = [
        line.split(":", 1)[1].replace(" ", "")
        for line in out.splitlines()
        if line.strip().startswith("0x")
    ]
    ip = bytes.fromhex("".join(dump))
    udp = 8 if tool.backend == "udp" else 0
    if family == "v4":
        assert ip[1] == 5 << 5
        assert int.from_bytes(ip[2:4], "big") == 20 + udp + 66
        assert ip[6] & 0x40  # don't fragment
        assert sum(int.from_bytes(ip[i : i + 2], "big") for i in range(0, 20, 2)) % 0xFFFF == 0
        assert ip[20 + udp :][:4] == (40000).to_bytes(2, "big") + (100).to_bytes(2, "big")
    else:
        assert (ip[0] << 4 | ip[1] >> 4) & 0xFF == 5 << 5
        assert int.from_bytes(ip[4:6], "big") == udp + 66
        assert ip[40 + udp :][:4] == (40000).to_bytes(2, "big") + (100).to_bytes(2, "big")
    if tool.backend != "udp":
        assert ip[9 if family == "v4" else 6] == 146


def test_mtu__largest_packet_passes_and_one_byte_more_is_refused(
    pair, tool: Tool, family: str
) -> None:
    a, b = pair
    header = (20 if family == "v4" else 40) + (8 if tool.backend == "udp" else 0)
    largest = 1500 - header - 56
    sent, packets = send_and_dump(tool, a, b, getattr(b, family), "--size", str(largest))
    assert [p["len"] for p in packets] == [1500 - header]
    assert pick(sent, "route")[0] == {
        "event": "route", "error": "", "mtu": 1500 - (8 if tool.backend == "udp" else 0)
    }  # fmt: skip
    got = tool.run(a, "--size", str(largest + 1), "--seconds", "2", "send", getattr(b, family))
    errors = pick(got, "error")
    assert [e["error"] for e in errors][:1] == ["EMSGSIZE"]
    assert errors[0]["dport"] == 100


@pytest.mark.parametrize("mtu", [600, 3000, 9000])
def test_mtu__other_sizes(tool: Tool, mtu: int) -> None:
    with Net() as net:
        a, b = net.pair(mtu=max(mtu, 1280))
        for space in (a, b):
            space.ip("link", "set", "eth0", "mtu", str(mtu))  # below 1280 IPv6 is off
        size = mtu - 20 - 8 - 56
        _, packets = send_and_dump(tool, a, b, b.v4, "--size", str(size), count=20)
        assert [p["len"] for p in packets] == [56 + size] * 20
        assert {p["hash"] for p in packets} == {content_hash(size, rpc=2 * i) for i in range(20)}


def test_mtu__raised_while_it_is_open(pair) -> None:
    """By a packet socket, which has buffers for that: what comes is longer than when it was opened."""
    a, b = pair
    tool = Tool("packet")
    server = tool.start(b, "echo")
    for space in (a, b):
        space.ip("link", "set", "eth0", "mtu", "4000")

    def answered() -> bool:
        got = tool.run(a, "--size", "3800", "--count", "3", "--seconds", "0.5", "ping", b.v4)
        return pick(got, "ping")[0]["received"] == 3

    eventually(answered, 20)
    server.stop()


def test_full__a_slow_device_pushes_back(pair) -> None:
    """A shaped interface fills the packet socket: packets wait, and none is lost."""
    a, b = pair
    a.run(["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "100mbit", "burst", "20k",
           "limit", "60m"])  # fmt: skip
    tool = Tool("packet")
    server = tool.start(b, "echo")
    got = tool.run(a, "--size", "1400", "--count", "3000", "--window", "300", "ping", b.v4)
    stats = pick(got, "stats")[0]
    assert stats["tx_full"] > 0 and stats["tx_errors"] == 0
    # A busy machine may overrun a socket.
    assert pick(got, "ping")[0]["received"] > 2900
    server.stop()


def test_loss__what_a_rule_drops_is_not_offered_again(pair, family: str) -> None:
    """The kernel says ENOBUFS of it. What is behind it leaves."""
    a, b = pair
    assert icmp_echo(a, getattr(b, family))  # so that they know each other: no packet waits
    protocol, at = ("ip", "9") if family == "v4" else ("ipv6", "6")
    for words in (
        "qdisc add dev eth0 root handle 1: htb default 20",
        "class add dev eth0 parent 1: classid 1:10 htb rate 1gbit",
        "class add dev eth0 parent 1: classid 1:20 htb rate 1gbit",
        "qdisc add dev eth0 parent 1:10 pfifo limit 0",
        f"filter add dev eth0 parent 1: prio 1 protocol {protocol} u32 match u8 146 0xff at {at} flowid 1:10",
    ):
        a.run(["tc", *words.split()])
    got = Tool("packet").run(a, "--count", "5", "--seconds", "0.5", "send", getattr(b, family))
    stats = pick(got, "stats")[0]
    assert (stats["tx_errors"], stats["tx_packets"], stats["tx_full"]) == (5, 0, 0)


def test_neighbour__unknown_is_resolved_and_packets_are_held(pair, tool: Tool, family: str) -> None:
    a, b = pair
    for space in (a, b):
        space.ip("neigh", "flush", "dev", "eth0")
    _, packets = send_and_dump(tool, a, b, getattr(b, family), count=3)
    assert len(packets) == 3


def test_neighbour__missing_host_gives_an_error(pair, tool: Tool, family: str) -> None:
    a, _ = pair
    for kind in ("ipv4", "ipv6"):
        a.run(["sysctl", "-qw", f"net.{kind}.neigh.eth0.retrans_time_ms=50"])
    nobody = {"v4": "10.9.0.77", "v6": "fd09::77"}[family]
    got = tool.run(a, "--seconds", "10", "send", nobody)
    error = pick(got, "error")[0]
    assert (error["error"], error["dst"], error["sport"], error["dport"]) == (
        "EHOSTUNREACH",
        nobody,
        40000,
        100,
    )


def test_route__none_is_an_error(pair, tool: Tool, family: str) -> None:
    a, _ = pair
    got = tool.run(a, "--seconds", "2", "send", {"v4": "172.31.0.1", "v6": "fdff::1"}[family])
    assert pick(got, "route")[0]["error"] == "ENETUNREACH"
    assert pick(got, "error")[0]["error"] == "ENETUNREACH"


def test_own_address__is_looped_back(pair, tool: Tool, family: str) -> None:
    a, _ = pair
    port = ["--port", "50000"] if tool.backend == "udp" else []
    to = [getattr(a, family), *(["50000"] if tool.backend == "udp" else [])]
    got = tool.run(a, *port, "--seconds", "1", "--count", "3", "--window", "2", "send", *to)
    packets = pick(got, "packet")
    assert [p["id"] for p in packets] == [0, 2, 4]
    assert {p["src"] for p in packets} == {getattr(a, family)}


def test_routed__through_a_router_and_a_smaller_mtu(tool: Tool, family: str) -> None:
    with Net() as net:
        a, _, b = net.routed(far_mtu=1300)
        to = getattr(b, family)
        _, packets = send_and_dump(tool, a, b, to, "--size", "500")
        assert [p["len"] for p in packets] == [556]
        got = tool.run(a, "--size", "1300", "--seconds", "5", "send", to)
        error = pick(got, "error")[0]
        udp = 8 if tool.backend == "udp" else 0
        assert (error["error"], error["mtu"]) == ("EMSGSIZE", 1300 - udp)
        # and the path's MTU is known from then on
        assert pick(got, "route")[-1]["mtu"] == 1300 - udp


def test_routed__what_is_for_others_is_not_received(tool: Tool, family: str) -> None:
    """A router that has the backend on the way forwards it, and has no buffer taken by it."""
    with Net() as net:
        a, router, b = net.routed()
        router.device = "left"
        beside = tool.start(router, "echo")
        _, packets = send_and_dump(tool, a, b, getattr(b, family), count=20)
        assert len(packets) == 20
        stats = pick(beside.stop(), "stats")[0]
        assert (stats["rx_packets"], stats["rx_malformed"]) == (0, 0)


def test_other_traffic__ping_and_tcp_go_on_beside_it(pair, tool: Tool) -> None:
    a, b = pair
    server = tool.start(b, "echo")
    client = a.start(
        tool.command(a, "--count", "100000000", "--seconds", "6", "--window", "4", "ping", b.v4)
    )
    client.line()
    start_tcp_echo(b)
    assert tcp_echo(a, b.v4, 3_000_000)
    assert icmp_echo(a, b.v4) and icmp_echo(a, b.v6)
    assert icmp_echo(a, b.v4, 4000)  # in fragments
    client.stop()
    assert pick(server.stop(), "stats")[0]["rx_packets"] > 0


def test_addresses__one_added_later_is_served(pair, tool: Tool) -> None:
    a, b = pair
    server = tool.start(b, "--count", "1", "--seconds", "15", "dump")
    b.address("10.9.0.22/24")

    def received() -> bool:
        tool.run(a, "--seconds", "0.2", "send", "10.9.0.22")
        return not server.process.running()

    eventually(received, 12)
    assert pick(server.wait(), "packet")[0]["dst"] == "10.9.0.22"


def test_addresses__each_of_many_is_served(pair, tool: Tool) -> None:
    a, b = pair
    many = [*(f"10.9.0.{n}" for n in range(100, 130)), *(f"fd09::1:{n}" for n in range(100, 130))]
    b.address(*(f"{address}/{64 if ':' in address else 24}" for address in many))
    server = tool.start(b, "echo")
    for to in (many[0], many[29], many[30], many[59]):
        got = tool.run(a, "--count", "3", "--window", "2", "--seconds", "0.3", "send", to)
        assert {p["src"] for p in pick(got, "packet")} == {to}
    server.stop()


def test_addresses__the_answer_comes_from_the_one_that_was_asked(pair, tool: Tool) -> None:
    a, b = pair
    b.address("10.9.0.22/24", "fd09::22/64")
    server = tool.start(b, "echo")
    for to in ("10.9.0.22", b.v4, "10.9.0.22", "fd09::22", b.v6, "fd09::22"):
        got = tool.run(a, "--count", "3", "--window", "2", "--seconds", "0.3", "send", to)
        assert {p["src"] for p in pick(got, "packet")} == {to}
    server.stop()
