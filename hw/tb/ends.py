# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Two hosts with real engines (hw_ends.c), what they send as frames for a card, and what a card
hands to a host as packets for an engine."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from hw.tb import codec, frames
from hw.tb.bench_lso import OTHER
from hw.tb.reference import judge
from hw.tb.supers import checksum
from hw.tb.units import DATA, DOFF_AT, HEADER, OFFSET_AT

SEQUENCE_AT = 4
DOFF_DATA = 0xE0
LONGEST = 65_536


@dataclass(frozen=True)
class Carrier:
    """What the hosts' packets are inside of. `encap`: a UDP port, or 0."""

    v6: bool = False
    encap: int = 0
    vlan: bool = False

    def frame(self, src: int, dst: int, prio: int, homa: bytes, other: bool) -> bytes:
        """A frame of the host `src`, as its driver makes it. `other`: with the address by which
        the benches know frames of the card's second input."""
        proto = frames.HOMA
        if self.encap:
            proto = frames.UDP
            homa = struct.pack(">HHHH", self.encap, self.encap, 8 + len(homa), 0) + homa
        if self.v6:
            ip = struct.pack(">IHBB", 6 << 28 | prio << 25, len(homa), proto, 64)
            ip += b"".join(b"\xfd" + bytes(14) + bytes([host + 1]) for host in (src, dst))
        else:
            ends = (10 << 24 | src + 1, 10 << 24 | dst + 1)
            said = (0x45, prio << 5, 20 + len(homa), 0, 0x4000, 64, proto, 0, *ends)
            ip = struct.pack(">BBHHHBBHII", *said)
            ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
        macs = (OTHER if other else b"\2" * 6) + b"\2" * 6
        tag = b"\x81\0" + (prio << 13).to_bytes(2, "big") if self.vlan else b""
        whole = macs + tag + (b"\x86\xdd" if self.v6 else b"\x08\0") + ip + homa
        return whole + bytes(max(0, 60 - len(whole)))


@dataclass(frozen=True)
class Out:
    """What a host sends: packets of `seg` bytes of a message, or a control packet."""

    src: int
    dst: int
    prio: int
    data: bool
    seg: int
    homa: bytes


class World:
    """The hosts. Times are in ns."""

    def __init__(self, seed: int, rate_mbps: int, mtu: int, carrier: Carrier) -> None:
        self.ffi, self.lib = codec.library()
        self.carrier = carrier
        self.ends = self.lib.hw_ends_new(seed, rate_mbps, mtu, carrier.v6, carrier.encap)
        self.out = self.ffi.new("struct hw_out *")
        self.buffer = self.ffi.new("char[]", LONGEST)

    def start(self, client: int, request: int, response: int) -> None:
        assert self.lib.hw_ends_start(self.ends, client, request, response) == 0

    def now(self) -> int:
        return int(self.lib.hw_ends_now(self.ends))

    def next(self) -> int:
        return int(self.lib.hw_ends_next(self.ends))

    def run(self, until: int) -> None:
        self.lib.hw_ends_run(self.ends, until)

    def queued(self, host: int, count: int) -> None:
        self.lib.hw_ends_queued(self.ends, host, count)

    def quiet(self) -> bool:
        return bool(self.lib.hw_ends_quiet(self.ends))

    def answered(self) -> int:
        return int(self.lib.hw_ends_answered(self.ends))

    def again(self) -> int:
        return int(self.lib.hw_ends_again(self.ends))

    def finish(self) -> None:
        self.lib.hw_ends_finish(self.ends)

    def get(self) -> Out | None:
        """What is to be sent next."""
        o = self.out
        if not self.lib.hw_ends_get(self.ends, o, self.buffer):
            return None
        homa = bytes(self.ffi.buffer(self.buffer, o.length))
        return Out(o.src, o.dst, o.prio, bool(o.data), o.seg, homa)

    def put(self, frame: bytes, pieces: int, seg: int) -> int:
        """A frame or unit that the card gave to a host, which its address says; packets in it."""
        said = judge(frame).said
        src, dst = (int(said[name]) - 1 & 0xFF for name in ("src", "dst"))
        prio = int(said["tos"]) >> 5
        packets = apart(frame, said["at"], pieces, seg)
        for packet in packets:
            self.lib.hw_ends_put(self.ends, src, dst, prio, packet, len(packet))
        return len(packets)


def apart(frame: bytes, at: int, pieces: int, seg: int) -> list[bytes]:
    """The Homa packets of a frame or unit, by nothing but what the card says beside it: the way of
    homa.ko with a buffer of its own kind."""
    if pieces == 1:
        homa = judge(frame).packet
        assert homa, f"no Homa packet: {frame[:200].hex()}"
        return [homa]
    head = bytearray(frame[at : at + OFFSET_AT])
    assert head[11] == DATA
    head[DOFF_AT] = DOFF_DATA
    size = HEADER - OFFSET_AT + seg
    body = frame[at + OFFSET_AT :]
    found = []
    for begin in range(0, len(body), size):
        piece = body[begin : begin + size]
        head[SEQUENCE_AT : SEQUENCE_AT + 4] = piece[:4]
        found.append(bytes(head) + piece)
    assert len(found) == pieces, f"{len(found)} packets in a unit of {pieces}"
    return found


def length(rng: random.Random, most: int) -> int:
    """Of a message: all magnitudes up to `most`."""
    return min(most, 1 + rng.randrange(1 << rng.randrange(most.bit_length())))
