# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Frames for the parser: good ones of every kind, and hostile ones made of them.

All that is random comes from the generator that is handed in, so a seed gives the same frames.
"""

from __future__ import annotations

import random
import struct

HOMA = 146
UDP = 17
TCP = 6
UDP_PORT = 54321
LONGEST = 1500
# Bytes that each type needs (homa_wire.h), without DATA's payload.
SIZES = {
    0x10: 56, 0x11: 33, 0x12: 37, 0x13: 28, 0x14: 28,
    0x15: 62, 0x16: 28, 0x17: 28, 0x18: 80, 0x19: 32,
}  # fmt: skip


def common(rng: random.Random, kind: int, sequence: int) -> bytes:
    """The 28 bytes of every Homa packet."""
    return struct.pack(
        ">HHI3sBBBHHHQ",
        rng.getrandbits(16),
        rng.getrandbits(16),
        sequence,
        rng.randbytes(3),
        kind,
        rng.choice((14, 13, 5)) << 4,
        6 if rng.random() < 0.9 else rng.getrandbits(8),
        rng.getrandbits(16),
        rng.choice((0, rng.getrandbits(16))),
        0xB97D if rng.random() < 0.95 else rng.getrandbits(16),
        rng.getrandbits(rng.choice((8, 32, 64))),
    )


def any_length(rng: random.Random) -> int:
    """A 32-bit number of the kinds that are told apart: usual, at a limit, nonsense."""
    return rng.choice(
        (
            rng.randint(1, 2_000_000),
            rng.randint(1, 3000),
            0,
            1,
            0x7FFFFFFF,
            0x80000000,
            0xFFFFFFFF,
            rng.getrandbits(32),
        )
    )


def data(rng: random.Random, payload: int) -> bytes:
    """A DATA packet; nine of ten are right."""
    length = rng.randint(payload or 1, max(payload, 1) + rng.choice((0, 10, 10_000, 2_000_000)))
    offset = rng.choice((0, length - payload, rng.randint(0, max(length - payload, 0))))
    if rng.random() < 0.1:
        length, offset = any_length(rng), any_length(rng)
    if rng.random() < 0.05:
        offset += rng.choice((1, -1))
    offset &= 0xFFFFFFFF
    in_sequence = rng.random() < 0.3
    sequence = offset if in_sequence else rng.getrandbits(32)
    body = struct.pack(
        ">IIQHHBBHI",
        length,
        any_length(rng),
        rng.getrandbits(64),
        rng.getrandbits(16),
        rng.getrandbits(16),
        rng.getrandbits(1),
        rng.getrandbits(3),
        rng.getrandbits(16),
        0xFFFFFFFF if in_sequence else offset,
    )
    return common(rng, 0x10, sequence) + body + rng.randbytes(payload)


def control(rng: random.Random, kind: int) -> bytes:
    """A packet of another type, with what may follow the last field."""
    sequence = rng.getrandbits(32)
    level = rng.choice((rng.randint(0, 7), rng.getrandbits(8)))
    body = rng.randbytes(SIZES.get(kind, rng.randint(28, 80)) - 28)
    if kind == 0x11:
        body = struct.pack(">IB", any_length(rng), level)
    elif kind == 0x12:
        body = struct.pack(">IIB", any_length(rng), any_length(rng), level)
    elif kind == 0x18:
        body = struct.pack(">H", rng.choice((0, 1, 5, 6, rng.getrandbits(16)))) + body[2:]
    elif kind == 0x19:
        body = struct.pack(">I", any_length(rng))
    extra = rng.choice((0, 0, 0, rng.randint(1, 60)))
    return common(rng, kind, sequence) + body + rng.randbytes(extra)


def homa(rng: random.Random, room: int) -> bytes:
    """Some Homa packet of about `room` bytes at most."""
    if rng.random() < 0.5:
        packet = data(rng, rng.randint(0, max(room - 56, 1)))
    else:
        packet = control(rng, rng.choice((*SIZES, rng.getrandbits(8))))
    return packet if rng.random() < 0.92 else packet[: rng.randint(0, 90)]


def options(rng: random.Random) -> bytes:
    """IPv4's, often none."""
    return rng.randbytes(4 * rng.choice((0, 0, 0, rng.randint(1, 10))))


def ipv4(rng: random.Random, proto: int, payload: bytes) -> bytes:
    more = options(rng)
    fragment = rng.choice((0, 0x4000, 0x4000, 0x4000, 0x8000, rng.getrandbits(16)))
    head = struct.pack(
        ">BBHHHBBH",
        0x45 + len(more) // 4,
        rng.getrandbits(8),
        (20 + len(more) + len(payload)) & 0xFFFF,
        rng.getrandbits(16),
        fragment,
        64,
        proto,
        rng.getrandbits(16),
    )
    return head + rng.randbytes(8) + more + payload


def extension(rng: random.Random, following: int) -> bytes:
    """An extension header, seldom one that is too long."""
    units = rng.choice((0, 0, 1, rng.randint(0, 7), rng.randint(0, 9)))
    return bytes((following, units)) + rng.randbytes(6 + 8 * units)


def ipv6(rng: random.Random, proto: int, payload: bytes) -> bytes:
    chain = rng.choice((0, 0, 0, 1, 2, 3))
    following = proto
    for _ in range(chain):
        payload = extension(rng, following) + payload
        following = rng.choice((0, 43, 60, 60, rng.choice((44, 51, 59))))
    head = struct.pack(">IHBB", 6 << 28 | rng.getrandbits(28), len(payload) & 0xFFFF, following, 64)
    return head + rng.randbytes(32) + payload


def ethernet(rng: random.Random, kind: int, payload: bytes) -> bytes:
    tag = struct.pack(">HH", 0x8100, rng.getrandbits(16)) if rng.random() < 0.3 else b""
    return rng.randbytes(12) + tag + struct.pack(">H", kind) + payload


def udp(rng: random.Random, payload: bytes, ours: bool) -> bytes:
    ports = [rng.getrandbits(16), rng.getrandbits(16)]
    if ours:
        ports[rng.getrandbits(1)] = UDP_PORT
    length = len(payload) + 8
    if rng.random() < 0.1:
        length = rng.choice((length - 1, length + 1, 0, 7, 8, rng.getrandbits(16)))
    checksum = rng.choice((0, rng.getrandbits(16)))
    return struct.pack(">HHHH", *ports, length & 0xFFFF, checksum) + payload


def good(rng: random.Random, longest: int) -> bytes:
    """A frame as a peer might send it."""
    if rng.random() < 0.03:
        return ethernet(rng, rng.getrandbits(16), rng.randbytes(rng.randint(0, longest)))
    carrier = rng.random()
    payload = homa(rng, rng.randint(28, longest))
    if carrier < 0.4:
        proto = HOMA
    elif carrier < 0.6:
        proto, payload = UDP, udp(rng, payload, rng.random() < 0.8)
    elif carrier < 0.85:
        proto = TCP
    else:
        proto, payload = rng.getrandbits(8), rng.randbytes(rng.randint(0, 100))
    if rng.random() < 0.5:
        frame = ethernet(rng, 0x0800, ipv4(rng, proto, payload))
    else:
        frame = ethernet(rng, 0x86DD, ipv6(rng, proto, payload))
    # Ethernet pads what is shorter than 60 bytes.
    return frame + bytes(max(0, 60 - len(frame))) if rng.random() < 0.7 else frame


def hostile(rng: random.Random, frame: bytes) -> bytes:
    """Something that was once `frame`."""
    way = rng.randrange(6)
    if way == 0:
        return frame[: rng.randint(1, len(frame))]
    if way == 1:
        return frame + rng.randbytes(rng.randint(1, 40))
    changed = bytearray(frame)
    begin = 18 if frame[12:14] == b"\x81\x00" else 14
    if way == 2 and len(frame) > begin + 4 and frame[begin - 2 : begin] == b"\x08\x00":
        # A length of IPv4's header, or of its packet, next to one that is right.
        if rng.random() < 0.5:
            changed[begin] = 0x40 | rng.choice((4, 5, 6, rng.randrange(16)))
        else:
            total = 4 * (frame[begin] & 15) + rng.choice((-1, 0, 1))
            changed[begin + 2 : begin + 4] = max(total, 0).to_bytes(2, "big")
        return bytes(changed)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(min(len(changed), 110))
        changed[at] = rng.choice((0, 0xFF, rng.getrandbits(8), changed[at] ^ 1 << rng.randrange(8)))
    return bytes(changed)


def frames(rng: random.Random, count: int) -> list[bytes]:
    """`count` of them: first all zero and all ones of every length from 1 to 1,500 as far as they
    fit into a quarter, then good and hostile ones."""
    found: list[bytes] = []
    lengths = list(range(1, LONGEST + 1))
    if count < 8 * LONGEST:
        lengths = sorted(rng.sample(lengths, min(count // 8, LONGEST)))
    for length in lengths:
        found += [bytes(length), b"\xff" * length]
    while len(found) < count:
        longest = rng.choice((120, 120, 300, LONGEST))
        frame = good(rng, longest)
        found.append(hostile(rng, frame) if rng.random() < 0.4 else frame)
    rng.shuffle(found)
    return found
