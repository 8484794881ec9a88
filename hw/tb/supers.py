# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Super-frames, and the packets that they should become: the engine says the Homa headers, the RFCs
those below."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from hw.tb import codec, frames
from hw.tb.layout import constants
from hw.tb.reference import judge

LONGEST = 9216
DEEPEST = 112  # where a Homa header may begin
KEPT = 192  # bytes that the block keeps of a frame


@dataclass(frozen=True)
class Super:
    """A frame for the transmit path, with what its descriptor says."""

    frame: bytes
    split: bool
    seg: int
    tag: int


@dataclass(frozen=True)
class Outcome:
    """Packets, and what the completion says. After a cut only the first so many may have left."""

    packets: list[bytes]
    status: int


def checksum(header: bytes) -> int:
    """RFC 791's, of a header whose own field is 0."""
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _packet(frame: bytes, begin: int, at: int, homa: bytes, number: int) -> bytes:
    """The frame's headers before byte `at`, for this Homa packet; IP begins at `begin`."""
    head = bytearray(frame[:at])
    if frame[begin] >> 4 == 4:
        size = 4 * (frame[begin] & 15)
        head[begin + 2 : begin + 4] = (at - begin + len(homa)).to_bytes(2, "big")
        was = int.from_bytes(frame[begin + 4 : begin + 6], "big")
        head[begin + 4 : begin + 6] = (was + number & 0xFFFF).to_bytes(2, "big")
        head[begin + 10 : begin + 12] = b"\0\0"
        right = checksum(bytes(head[begin : begin + size]))
        head[begin + 10 : begin + 12] = right.to_bytes(2, "big")
    else:
        head[begin + 4 : begin + 6] = (at - begin - 40 + len(homa)).to_bytes(2, "big")
    return bytes(head) + homa


def expect(item: Super) -> Outcome:
    """What should become of it."""
    c = constants()
    if not item.split:
        if len(item.frame) > LONGEST + KEPT:
            return Outcome([], c["DONE_REFUSED"])
        return Outcome([item.frame], c["DONE_SENT"])
    verdict = judge(item.frame)
    said = verdict.said
    kind = said.get("class_")
    udp = kind == c["CLASS_HOMA_UDP"]
    refused = Outcome([], c["DONE_REFUSED"])
    begin = 18 if item.frame[12:14] == b"\x81\x00" else 14
    if verdict.bad:
        return Outcome(cut(item, begin), c["DONE_CUT"])
    if kind != c["CLASS_HOMA"] and not udp:
        return refused
    if said["error"] or verdict.packet[11] != 0x10 or (udp and said["v6"]) or not item.seg:
        return refused
    largest = said["at"] + 56 + min(item.seg, len(verdict.packet) - 56)
    if largest > LONGEST or said["at"] > DEEPEST:
        return refused
    return Outcome(split(item, begin, said["at"], verdict.packet), c["DONE_SENT"])


def split(item: Super, begin: int, at: int, homa: bytes) -> list[bytes]:
    """All packets of a Homa packet that begins at `at`."""
    header, message = homa[:56], homa[56:]
    packets = []
    for number, skip in enumerate(range(0, len(message), item.seg)):
        part = codec.segment(header, skip) + message[skip : skip + item.seg]
        packet = _packet(item.frame, begin, at, part, number)
        if item.frame[begin:][9 if item.frame[begin] >> 4 == 4 else 6] == frames.UDP:
            length = (8 + len(part)).to_bytes(2, "big")
            packet = packet[: at - 4] + length + b"\0\0" + packet[at:]
        packets.append(packet)
    return packets


def cut(item: Super, begin: int) -> list[bytes]:
    """The packets of a frame that ends too early, as far as they can be made; of a frame that is
    whole in the first place."""
    v4 = item.frame[begin : begin + 1] and item.frame[begin] >> 4 == 4
    field = 2 if v4 else 4
    length = int.from_bytes(item.frame[begin + field : begin + field + 2], "big")
    end = begin + length + (0 if v4 else 40)
    whole = item.frame + bytes(max(0, end - len(item.frame)))
    outcome = expect(Super(whole, True, item.seg, 0)) if not judge(whole).bad else Outcome([], 0)
    return outcome.packets


def super_frame(rng: random.Random, longest: int) -> bytes:
    """A good one: DATA with up to `longest` bytes of a message."""
    payload = rng.randint(1, longest)
    offset = rng.choice((0, rng.randint(0, 1_000_000)))
    length = offset + payload + rng.choice((0, rng.randint(0, 100_000)))
    body = struct.pack(
        ">IIQHHBBHI",
        length,
        rng.randint(0, length),
        rng.getrandbits(64),
        rng.getrandbits(16),
        rng.getrandbits(16),
        rng.getrandbits(1),
        rng.getrandbits(3),
        rng.getrandbits(16),
        offset,
    )
    homa = frames.common(rng, 0x10, offset) + body + rng.randbytes(payload)
    carrier = rng.random()
    proto = frames.HOMA
    if carrier < 0.3:
        proto = frames.UDP
        homa = struct.pack(">HHHH", 54321, 54321, 8 + len(homa), rng.getrandbits(16)) + homa
    elif carrier < 0.35:
        proto = frames.TCP
    if rng.random() < 0.6:
        return frames.ethernet(rng, 0x0800, _whole(rng, proto, homa))
    return frames.ethernet(rng, 0x86DD, frames.ipv6(rng, proto, homa))


def _whole(rng: random.Random, proto: int, payload: bytes) -> bytes:
    """IPv4 that is no fragment."""
    packet = bytearray(frames.ipv4(rng, proto, payload))
    packet[6:8] = b"\x40\0"
    return bytes(packet)


def make(rng: random.Random, count: int) -> list[Super]:
    """So many: mostly good ones, some that are refused, cut short, or not to be segmented."""
    found = []
    for tag in range(count):
        longest = rng.choice((100, 1000, 4000, 20_000, 65_000 if rng.random() < 0.2 else 3000))
        frame = super_frame(rng, longest)
        seg = rng.choice((1384, 1408, 8936, rng.randint(1, 9000), rng.randint(40, 300)))
        if len(frame) > 20_000:
            seg = max(seg, 1000)
        way = rng.random()
        if way < 0.06:
            frame = frame[: rng.randint(1, len(frame))]
        elif way < 0.12:
            frame = frames.hostile(rng, frame[:3000])
        elif way < 0.15:
            seg = rng.choice((0, 9217, 65535))
        elif way < 0.18:
            frame = frames.good(rng, 300)
        if rng.random() < 0.2:
            found.append(Super(frame[: rng.choice((1500, 9216))], False, seg, tag & 255))
        else:
            found.append(Super(frame, True, seg, tag & 255))
    return found
