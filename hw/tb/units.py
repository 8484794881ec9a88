# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Packets of many RPCs for large receive, and what may become of them: which packets may be in one
unit, and how a unit is taken apart again."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from hw.tb import frames
from hw.tb.layout import constants
from hw.tb.reference import Verdict
from hw.tb.supers import checksum

DATA = 0x10
HEADER = 56  # bytes of a DATA packet before its payload
DOFF_AT = 12
DOFF_UNIT = 0xD0
OFFSET_AT = 52
MOST = 64  # packets in a unit
LONGEST = 9216


@dataclass
class Rpc:
    """One direction of an RPC. `udp`, `v6`, `vlan`: what its packets are inside of; `seg`: bytes in
    each packet; `sent`: bytes of the message that were made into packets."""

    number: int
    length: int
    seg: int
    v6: bool = False
    udp: bool = False
    vlan: bool = False
    tos: int = 0
    sent: int = 0
    ident: int = 0

    def frame(self, rng: random.Random, homa: bytes) -> bytes:
        """Around a Homa packet: Ethernet and IP that nothing is wrong with."""
        proto = frames.HOMA
        if self.udp:
            proto = frames.UDP
            homa = struct.pack(">HHHH", 54321, 54321, 8 + len(homa), 0) + homa
        if self.v6:
            ip = struct.pack(">IHBB", 6 << 28 | self.tos << 20, len(homa), proto, 64)
            ip += bytes(15) + b"\1" + bytes(14) + self.number.to_bytes(2, "big")
        else:
            self.ident = self.ident + 1 & 0xFFFF
            total = 20 + len(homa)
            ip = struct.pack(
                ">BBHHHBBHII", 0x45, self.tos, total, self.ident, 0x4000, 64, proto, 0, 1, 2
            )
            ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
        tag = b"\x81\0\x60\5" if self.vlan else b""
        kind = b"\x86\xdd" if self.v6 else b"\x08\0"
        whole = b"\2" * 12 + tag + kind + ip + homa
        return whole + bytes(max(0, 60 - len(whole)))

    def common(self, kind: int, sequence: int) -> bytes:
        rpc = (self.number << 1) * 0x1000100010001 & (1 << 64) - 1
        ports = 0x8000 + self.number, 99
        return struct.pack(
            ">HHI3sBBBHHHQ", *ports, sequence, bytes(3), kind, 0xE0, 6, 0, 0, 0xB97D, rpc
        )

    def data(self, rng: random.Random, size: int = 0, **changes: int) -> bytes:
        """The next packet of the message. `changes`: fields that are not as usual."""
        size = min(size or self.seg, self.length - self.sent)
        offset = self.sent
        self.sent += size
        seg_offset = 0xFFFFFFFF if changes.get("in_sequence") else offset
        body = struct.pack(
            ">IIQHHBBHI",
            self.length,
            changes.get("incoming", 60_000),
            changes.get("ack", 0),
            0,
            changes.get("cutoffs", 7),
            changes.get("retransmit", 0),
            0,
            0,
            seg_offset,
        )
        return self.frame(rng, self.common(DATA, offset) + body + rng.randbytes(size))

    def grant(self, rng: random.Random) -> bytes:
        return self.frame(rng, self.common(0x11, 0) + struct.pack(">IB", rng.getrandbits(20), 3))


def rpc_of(verdict: Verdict) -> tuple[object, ...]:
    """Whose packet it is; frames without an RPC are all of one."""
    homa = verdict.packet
    if len(homa) < 28:
        return ()
    said = verdict.said
    return said["src"], homa[:4], homa[20:28]


def header(frame: bytes, verdict: Verdict) -> tuple[object, ...]:
    """All in which packets of a unit are alike."""
    said = verdict.said
    homa = verdict.packet
    names = ("tci", "vlan", "v4", "tos", "src", "dst", "class_", "at")
    ports = frame[said["at"] - 8 : said["at"] - 4] if "no_sum" in said else b""
    return (*(said[name] for name in names), ports, homa[:4], homa[8:OFFSET_AT])


def merges(frame: bytes, verdict: Verdict) -> bool:
    """May it be in a unit with others?"""
    c = constants()
    said = verdict.said
    if verdict.bad or said.get("error", 1) or len(frame) > LONGEST:
        return False
    homa = verdict.packet
    udp = said["class_"] == c["CLASS_HOMA_UDP"]
    if homa[11] != DATA or not (said["class_"] == c["CLASS_HOMA"] or udp):
        return False
    begin = 18 if said["vlan"] else 14
    if udp and not (said["v4"] and said["no_sum"]):
        return False
    if said["at"] != begin + (20 if said["v4"] else 40) + (8 if udp else 0):
        return False
    if said["v4"] and checksum(frame[begin : begin + 20]):
        return False
    if homa[OFFSET_AT:HEADER] == b"\xff" * 4 or homa[48]:
        return False
    # What is behind a packet would not be in the unit.
    if said["at"] + len(homa) != len(frame):
        return False
    return said["length"] != len(homa) - HEADER


def expect_unit(packets: list[tuple[bytes, Verdict]]) -> bytes:
    """The unit that these packets make: the first one's header, then offset and payload of each."""
    first, verdict = packets[0]
    at = verdict.said["at"]
    unit = bytearray(first[: at + OFFSET_AT])
    unit[at + DOFF_AT] = DOFF_UNIT
    for _, other in packets:
        unit += other.packet[OFFSET_AT:]
    return bytes(unit)


def traffic(rng: random.Random, count: int) -> list[bytes]:
    """So many frames: some RPCs at a time send their messages, with all that may come between."""
    found: list[bytes] = []
    number = 0
    active: list[Rpc] = []
    while len(found) < count:
        while len(active) < rng.choice((1, 4, 16, 20)):
            number += 1
            seg = rng.choice((1, 100, 333, 1000, 1384, 1408))
            length = seg * rng.randint(2, 80) + rng.choice((0, rng.randint(1, seg)))
            v6 = rng.random() < 0.3
            udp = not v6 and rng.random() < 0.3
            active.append(Rpc(number, length, seg, v6, udp, rng.random() < 0.3))
        rpc = rng.choice(active)
        for _ in range(rng.choice((1, 1, 2, 10))):
            if rpc.sent < rpc.length:
                found.append(odd(rng, rpc) if rng.random() < 0.06 else rpc.data(rng))
        if rng.random() < 0.03:
            rpc.tos = rng.choice((0, 1, 32, 64))
        if rpc.sent >= rpc.length:
            active.remove(rpc)
    return found[:count]


def odd(rng: random.Random, rpc: Rpc) -> bytes:
    """Something else than the next packet as usual."""
    way = rng.randrange(12)
    if way == 0:
        return rpc.grant(rng)
    if way == 1:
        return frames.good(rng, 300)
    if way == 2:
        return rpc.data(rng, rng.randint(1, rpc.seg + 50))
    if way < 9:
        name = ("in_sequence", "incoming", "ack", "cutoffs", "retransmit", "retransmit")[way - 3]
        return rpc.data(rng, **{name: 1})
    frame = rpc.data(rng)
    if way == 9:
        return frame[: rng.randint(1, len(frame))]
    if way == 10:
        return frame + rng.randbytes(rng.randint(1, 70))
    return frames.hostile(rng, frame)
