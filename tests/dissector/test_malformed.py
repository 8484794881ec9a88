# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Malformed, cut off and random packets: each fault is named, and the script never fails."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from shark import common, data, experts, fields, ip, needs_tshark, udp, vectors, write

pytestmark = needs_tshark

SIZES = {
    0x10: 56,
    0x11: 33,
    0x12: 37,
    0x13: 28,
    0x14: 28,
    0x15: 62,
    0x16: 28,
    0x17: 28,
    0x18: 80,
    0x19: 32,
}
REMARKED = {0x12: {"resend"}, 0x13: {"rpc_unknown"}}  # also when nothing is wrong
OTHER_SIDE = {0x18}  # sent by clients, the others here by servers


def whole(kind: int) -> bytes:
    """A packet of this type that has nothing but its fields; DATA with one byte of payload."""
    if kind == 0x10:
        return data(101, 1)
    body = bytearray(SIZES[kind] - 28)
    if kind == 0x19:
        body[3] = 1
    return common(kind, 100 if kind in OTHER_SIDE else 101) + bytes(body)


def test_type__every_one_is_clean_when_whole(tmp_path: Path) -> None:
    kinds = list(SIZES)
    found = experts(write(tmp_path / "c.pcap", [ip(whole(k)) for k in kinds]))
    assert found == [REMARKED.get(k, set()) for k in kinds]


def test_short__is_said_at_every_length(tmp_path: Path) -> None:
    """Each type, cut to every length below its own."""
    cases = [(k, n) for k in SIZES for n in range(1, SIZES[k])]
    for wrap in (ip, udp):
        found = experts(write(tmp_path / "c.pcap", [wrap(whole(k)[:n]) for k, n in cases]))
        for case, said in zip(cases, found, strict=True):
            assert "short" in said and not said & {"lua", "malformed"}, case


def test_snaplen__is_no_fault(tmp_path: Path) -> None:
    """A capture that kept only the first bytes shows what it has."""
    cases = [(v, n) for v in vectors()[::2] for n in range(0, min(len(v.homa), 84), 3)]
    cut = [v.frame[: len(v.frame) - len(v.homa) + n] for v, n in cases]
    found = experts(write(tmp_path / "c.pcap", cut, [len(v.frame) for v, _ in cases]))
    for (vector, length), said in zip(cases, found, strict=True):
        faults = said - {"retransmit", "resend", "rpc_unknown", "unsegmented"}
        assert not faults - {"malformed" if length == 0 else ""}, (vector.name, length)


def test_snaplen__of_joined_packets_is_no_fault(tmp_path: Path) -> None:
    """A datagram of three packets, as segmentation offload shows it, cut off at every place."""
    message = b"".join(data(100, 300, offset=at, size=100) for at in (0, 100, 200))
    whole = udp(message)
    head = len(whole) - len(message)
    lengths = range(head, len(whole))
    capture = write(tmp_path / "c.pcap", [whole[:n] for n in lengths], [len(whole)] * len(lengths))
    rows = fields(capture, ["homa.payload_length"])
    for length, said, row in zip(lengths, experts(capture), rows, strict=True):
        assert not said - {"malformed" if length == head else ""}, length
        sizes = row["homa.payload_length"]
        # Where the first packet ends is known once the second one's header is there.
        assert sizes == ["100"] * len(sizes), length
        assert len(sizes) >= (length - head - 28) // 156, length


def test_gaps__message_in_too_many_pieces_is_not_followed(tmp_path: Path) -> None:
    """The sender of the packets chose how many pieces there are to look at for each of them."""

    def capture(pieces: int) -> list[int]:
        places = [*range(1, 2 * pieces, 2), *range(0, 2 * pieces, 2)]
        frames = [ip(data(100, 2 * pieces, offset=at, size=1)) for at in places]
        rows = fields(write(tmp_path / "c.pcap", frames), ["homa.request_complete_in"])
        return [n for n, row in enumerate(rows) if row["homa.request_complete_in"]]

    assert capture(1000) == list(range(1999))
    assert capture(1100) == []


@pytest.mark.parametrize(
    ("packet", "want"),
    [
        (common(0x1A, 100), {"type"}),
        (common(0x00, 100), {"type"}),
        (data(100, 0, size=1), {"length"}),
        (data(100, 0x80000000, size=1), {"length"}),
        (data(100, 10, size=0), {"empty"}),
        (data(100, 10, size=11), {"offset"}),
        (data(100, 10, offset=0xFFFFFFF0, size=1), {"offset"}),
        (data(100, 10, retransmit=1), {"retransmit"}),
        (common(0x18, 100) + struct.pack(">H", 6) + bytes(50), {"count"}),
        (common(0x18, 100) + struct.pack(">H", 65535) + b"\xff" * 50, {"count"}),
        (common(0x18, 101) + bytes(52), {"side"}),
        (common(0x17, 100), {"side"}),
        (common(0x11, 101) + struct.pack(">IB", 10, 8), {"priority"}),
        (common(0x12, 101) + struct.pack(">IIB", 1, 1, 255), {"priority", "resend"}),
        (common(0x11, 101) + bytes(6), {"trailer"}),
        (common(0x19, 100) + bytes(4), {"length"}),
        (common(0x14, 101)[:13] + b"\x02" + common(0x14, 101)[14:], {"markers"}),
    ],
)
def test_fault__is_named(packet: bytes, want: set[str], tmp_path: Path) -> None:
    assert experts(write(tmp_path / "c.pcap", [ip(packet)])) == [want]


def test_random__never_breaks_the_script(tmp_path: Path) -> None:
    """Captured frames with bytes changed, cut and joined; the seed is fixed."""
    chance = random.Random(4)
    frames = []
    genuine = vectors()
    for _ in range(3000):
        packet = bytearray(chance.choice(genuine).homa[:1500])
        for _ in range(chance.choice((0, 1, 2, 8, 60))):
            packet[chance.randrange(len(packet))] = chance.choice(
                (0, 1, 0x10, 0x7F, 0xFF, chance.randrange(256))
            )
        if chance.random() < 0.3:
            del packet[chance.randrange(len(packet)) :]
        if chance.random() < 0.2:
            packet += chance.choice(genuine).homa[: chance.randrange(200)]
        wrap = chance.choice((ip, udp, lambda p: ip(p, 6), lambda p: ip(p, 146, v6=True)))
        frames.append(wrap(bytes(packet)))
    lengths = [len(f) + chance.choice((0, 0, 0, 100, 70000)) for f in frames]
    found = experts(write(tmp_path / "c.pcap", frames, lengths))
    assert not [n for n, said in enumerate(found) if "lua" in said]
    assert sum(bool(said) for said in found) > 500


def test_icmp__quoted_packet_is_no_fault_and_no_rpc(tmp_path: Path) -> None:
    """An ICMP error has the first bytes of the packet that it is about."""
    request = ip(data(100, 100))
    error = ip(struct.pack(">BBHI", 3, 3, 0, 0) + request[:48], 1, back=True)
    short = ip(struct.pack(">BBHI", 3, 3, 0, 0) + request[:28], 1, back=True)
    capture = write(tmp_path / "c.pcap", [request, error, short])
    assert experts(capture) == [set(), set(), set()]
    rows = fields(capture, ["homa.stream", "homa.sport", "_ws.col.Protocol"])
    assert [r["homa.stream"] for r in rows] == [["0"], [], []]
    assert [r["homa.sport"] for r in rows] == [["32768"]] * 3
    assert [r["_ws.col.Protocol"] for r in rows] == [["Homa"], ["ICMP"], ["ICMP"]]
