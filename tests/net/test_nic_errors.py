# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""ICMP errors, sent and understood by both backends, and frames made by an enemy."""

from __future__ import annotations

import os
import socket
import struct

import pytest
from netns import Namespace, Net
from nictool import PROGRAM, Tool, events, pick

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces, so it needs root"),
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
]


@pytest.fixture
def pair():
    with Net() as net:
        yield net.pair()


@pytest.fixture(params=["afxdp", "udp"])
def tool(request: pytest.FixtureRequest) -> Tool:
    return Tool(request.param)


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("swap", [False, True])
def test_port_unreachable__both_ways(pair, tool: Tool, family: str, swap: bool) -> None:
    a, b = reversed(pair) if swap else pair
    server = tool.start(b, "refuse")
    got = tool.run(
        a, "--sport", "33000", "--dport", "77", "--seconds", "10", "send", getattr(b, family)
    )
    error = pick(got, "error")[0]
    assert (error["error"], error["dst"]) == ("ECONNREFUSED", getattr(b, family))
    assert (error["sport"], error["dport"], error["id"]) == (33000, 77, 0)
    assert error["dst_port"] == (54321 if tool.backend == "udp" else 0)
    assert pick(got, "stats")[0]["icmp_errors"] == 1
    server.stop()


def test_port_unreachable__is_limited_in_rate(pair, tool: Tool) -> None:
    a, b = pair
    server = tool.start(b, "refuse")
    tool.run(a, "--seconds", "10", "send", b.v4)  # the neighbour is known now
    got = tool.run(a, "--count", "4000", "--window", "2", "--seconds", "1", "send", b.v4)
    errors = pick(got, "stats")[0]["icmp_errors"]
    stats = pick(server.stop(), "stats")[0]
    assert 1 <= errors < stats["rx_packets"] <= 4001
    # A full socket's drops are told with its next packet, which may never come.
    if tool.backend != "udp":
        assert stats["rx_packets"] + stats["rx_dropped"] == 4001


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_nobody_there__kernel_answers(pair, tool: Tool, family: str) -> None:
    """No process at the other side: UDP has a closed port, AF_XDP a protocol nobody knows."""
    a, b = pair
    got = tool.run(a, "--seconds", "10", "send", getattr(b, family))
    expected = "ECONNREFUSED" if tool.backend == "udp" else "EPROTONOSUPPORT"
    assert [e["error"] for e in pick(got, "error")] == [expected]


def test_nobody_there__errors_do_not_block_sending_to_others(pair) -> None:
    """The kernel reports an old packet's error in place of the next send: no packet may get lost by that."""
    a, b = pair
    tool = Tool("udp")
    server = tool.start(b, "--port", "6000", "--count", "500", "--seconds", "10", "dump")
    # one process sends to both ports: the closed one by a second address of b
    b.address("10.9.0.3/24")
    noise = a.start(
        tool.command(a, "--count", "3000", "--seconds", "5", "--window", "2", "send", "10.9.0.3")
    )
    got = tool.run(a, "--port", "54400", "--count", "500", "--seconds", "0.5", "send", b.v4, "6000")
    assert pick(got, "stats")[0]["tx_packets"] == 500
    assert len(pick(server.wait(), "packet")) == 500
    noise.stop()


def test_unreachable__from_a_router(tool: Tool) -> None:
    with Net() as net:
        a, router, _ = net.routed()
        router.ip("route", "add", "unreachable", "10.66.0.0/16")
        router.ip("-6", "route", "add", "unreachable", "fd66::/16")
        for to in ("10.66.0.1", "fd66::1"):
            got = tool.run(a, "--seconds", "10", "send", to)
            assert [e["error"] for e in pick(got, "error")] in (
                ["EHOSTUNREACH"],
                ["ENETUNREACH"],
            ), got


def inject(space: Namespace, frames: list[bytes]) -> None:
    """Send raw Ethernet frames from eth0."""
    script = (
        "import socket\n"
        "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
        "s.bind(('eth0', 0))\n"
        f"for f in {[f.hex() for f in frames]!r}: s.send(bytes.fromhex(f))\n"
    )
    space.run(["/usr/bin/python3", "-c", script])


def ipv4(space: Namespace, other: Namespace, payload: bytes, proto: int = 146, length: int | None = None,
         ihl: int = 5, fragment: int = 0x4000, bad_sum: bool = False, dst: str = "") -> bytes:  # fmt: skip
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x40 | ihl, 0, 20 + len(payload) if length is None else length, 0, fragment, 64, proto, 0,
        socket.inet_aton(space.v4), socket.inet_aton(dst or other.v4),
    )  # fmt: skip
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return head[:10] + struct.pack("!H", checksum ^ bad_sum) + head[12:] + payload


def mac(space: Namespace) -> bytes:
    return bytes.fromhex(
        space.run(["cat", "/sys/class/net/eth0/address"]).stdout.strip().replace(":", "")
    )


def test_hostile_frames__are_dropped_and_counted(pair) -> None:
    a, b = pair
    tool = Tool("afxdp")
    server = tool.start(b, "dump")
    ether = mac(b) + mac(a)
    v4, v6 = ether + b"\x08\x00", ether + b"\x86\xdd"
    body = bytes(range(60))
    ip6 = struct.pack("!IHBB", 6 << 28, 60, 146, 64) + socket.inet_pton(socket.AF_INET6, a.v6) + socket.inet_pton(
        socket.AF_INET6, b.v6)  # fmt: skip
    bad = [
        v4 + ipv4(a, b, body, length=2000),
        v4 + ipv4(a, b, body, length=20),
        v4 + ipv4(a, b, body, length=0),
        v4 + ipv4(a, b, body, ihl=15, length=40),
        v4 + ipv4(a, b, body, ihl=3),
        v4 + ipv4(a, b, body, bad_sum=True),
        v6 + ip6[:4] + struct.pack("!H", 1400) + ip6[6:] + body,
        v6 + ip6[:4] + struct.pack("!H", 0) + ip6[6:] + body,
    ]
    passed_on = [
        v4 + ipv4(a, b, body, fragment=0x2000),
        v4 + ipv4(a, b, body, fragment=0x0001),
        v4 + ipv4(a, b, body, dst="10.9.0.250"),
        v4 + ipv4(a, b, body)[:19],
        v6 + ip6[:30],
        ether + b"\x81\x00\x00\x05\x08\x00" + ipv4(a, b, body),
    ]
    good = [v4 + ipv4(a, b, body), v6 + ip6 + body, v4 + ipv4(a, b, body) + bytes(20)]
    inject(a, bad + passed_on + good + bad)
    for _ in good:
        event = server.event()
        assert event["event"] == "packet" and event["len"] == 60
    inject(a, good[:1])
    assert server.event()["len"] == 60  # whatever came before it has been seen
    rest = server.stop()
    assert pick(rest, "packet") == []
    assert pick(rest, "stats")[0]["rx_malformed"] == 2 * len(bad)


def test_hostile_icmp__is_not_believed(pair) -> None:
    """An error about a packet that we did not send, by somebody else's source address."""
    a, b = pair
    tool = Tool("afxdp")
    client = a.start(
        tool.command(a, "--count", "1", "--seconds", "3", "--window", "2", "send", b.v4)
    )
    client.line()
    ether = mac(a) + mac(b) + b"\x08\x00"
    quote_own = ipv4(a, b, bytes(40))
    quote_other = quote_own[:12] + socket.inet_aton("10.9.0.200") + quote_own[16:]
    quote_tcp = ipv4(a, b, bytes(40), proto=6)

    def icmp(kind: int, code: int, quote: bytes, value: int = 0) -> bytes:
        msg = struct.pack("!BBHI", kind, code, 0, value) + quote
        total = sum(struct.unpack(f"!{len(msg) // 2}H", msg))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        msg = msg[:2] + struct.pack("!H", ~total & 0xFFFF) + msg[4:]
        return ether + ipv4(b, a, msg, proto=1)

    server = tool.start(b, "sink")
    inject(b, [
        icmp(3, 1, quote_other), icmp(3, 1, quote_tcp), icmp(3, 1, quote_own[:18]), icmp(3, 1, b""),
        icmp(8, 0, quote_own), icmp(3, 4, quote_own, 60), icmp(3, 4, quote_own, 1400),
    ])  # fmt: skip
    _, out, _ = client.wait()
    server.stop()
    got = events(out)
    own = [e for e in pick(got, "error") if e["error"] == "EMSGSIZE"]
    assert [e["mtu"] for e in own] == [60, 1400]
    assert not [e for e in pick(got, "error") if e["error"] == "EHOSTUNREACH"]
    # A forged MTU of 60 does not shrink packets to nothing (RFC 1191).
    assert pick(got, "route")[-1]["mtu"] == 552
