#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A host on the network that knows the protocol and lies: `liar.py SEED SECONDS RATE OWN TARGET...`

It sends RATE packets a second to the addresses TARGET, all IPv4 or all IPv6, in *lies* of some hundred packets: packets
of every type with any field, broken ones, messages of which only a part comes, requests nobody waits
for, replays, lies about RPCs that it has itself begun or been answered, packets in the name of another
target, ICMP errors that quote any of these, and the same inside UDP. What it does follows from
SEED, but for answers that it hears; `lie=NAME` as a last word keeps it to one kind, HOMA_LIAR_WAYS to some ways. Prints how many
packets went out, by lie. Ports 4000 and 4001 are servers; it needs root, for raw sockets.
"""

from __future__ import annotations

import os
import random
import select
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

PROTOCOL, UDP_PORT = 146, 54321
DATA, GRANT, RESEND, UNKNOWN, BUSY, CUTOFFS, FREEZE, NEED_ACK, ACK, START = range(0x10, 0x1A)
TYPES = range(0x0F, 0x1B)
EDGES = (0, 1, 2, 55, 56, 1400, 65535, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
SERVERS = (4000, 4001)
BURST = 200
DEFAULT_WAYS = "native udp spoofed icmp"
MTU = 1380  # with the headers of IPv6 and UDP it fits 1,500 bytes


def checksum(data: bytes) -> int:
    """Of the Internet protocols."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def is_v6(address: str) -> bool:
    return ":" in address


def ip(source: str, target: str, protocol: int, payload: bytes) -> bytes:
    """A packet; the kernel fills in the length and checksum of IPv4."""
    if is_v6(target):
        ends = (socket.inet_pton(socket.AF_INET6, a) for a in (source, target))
        return struct.pack(">IHBB16s16s", 6 << 28, len(payload), protocol, 64, *ends) + payload
    addresses = socket.inet_aton(source), socket.inet_aton(target)
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, protocol, 0, *addresses) + payload


def pseudo(source: str, target: str, protocol: int, length: int) -> bytes:
    """What checksums above IPv6 include."""
    ends = (socket.inet_pton(socket.AF_INET6, a) for a in (source, target))
    return struct.pack(">16s16sII", *ends, length, protocol)


def common(kind: int, sport: int, dport: int, number: int) -> bytes:
    """What every packet of Homa begins with."""
    return struct.pack(
        ">HHI3sBBBHHHQ", sport, dport, 0, b"", kind, 0x50, 6, 0, 0, 0xB97D, number & (1 << 64) - 1
    )


class Liar:
    """`ids`: of RPCs that it began or heard of, (server port, own port, id) each."""

    def __init__(self, seed: int, own: str, targets: list[str]) -> None:
        self.chance = random.Random(seed)
        self.own, self.targets = own, targets
        self.ids: list[tuple[int, int, int]] = []
        self.sent: list[bytes] = [b"nothing yet"]
        self.next_id = self.chance.randrange(1 << 40) * 2
        self.lies: dict[str, Callable[[], bytes]] = {
            "any": self.any, "broken": self.broken, "half": self.half, "request": self.request,
            "replay": self.replay, "own": self.about_own, "cutoffs": self.cutoffs,
        }  # fmt: skip
        self.ways = os.environ.get("HOMA_LIAR_WAYS", DEFAULT_WAYS).split()

    def number(self, bits: int) -> int:
        """Of any magnitude, edges often."""
        if self.chance.random() < 0.5:
            return self.chance.choice(EDGES) & ((1 << bits) - 1)
        return self.chance.getrandbits(self.chance.randint(1, bits))

    def rpc(self) -> tuple[int, int, int]:
        """One that may exist, or surely not."""
        if self.ids and self.chance.random() < 0.6:
            return self.chance.choice(self.ids)
        port = self.chance.choice((*SERVERS, self.number(16)))
        return port, self.number(16), self.number(64)

    def data(self, ids: tuple[int, int, int], length: int, offset: int, payload: int) -> bytes:
        head = common(DATA, ids[1], ids[0], ids[2])
        rest = (self.chance.choice((0, 0, 0, 1)), 0, 0, offset)
        ack = (0, 0)
        if self.chance.random() < 0.2:
            ack = (self.number(64), self.number(16))
        body = struct.pack(">IIQHHBBHI", length, min(length, 1 << 31), *ack, self.number(16), *rest)
        return head + body + bytes(payload)

    def begin(self) -> tuple[int, int, int]:
        self.next_id += 2
        made = (self.chance.choice(SERVERS), 0x8000 + self.next_id % 1000, self.next_id)
        self.ids = [*self.ids[-500:], made]
        return made

    # The lies: each makes a packet of Homa.

    def any(self) -> bytes:
        packet = common(self.chance.choice(TYPES), *self.rpc())
        fields = (self.number(32) for _ in range(self.chance.randint(0, 12)))
        return packet + b"".join(struct.pack(">I", field) for field in fields)

    def broken(self) -> bytes:
        packet = bytearray(self.chance.choice((self.any, self.half, self.about_own))())
        for _ in range(self.chance.randint(1, 8)):
            packet[self.chance.randrange(len(packet))] = self.chance.getrandbits(8)
        return bytes(packet[: self.chance.randint(0, len(packet))])

    def half(self) -> bytes:
        length = self.chance.choice((1401, 20_000, 1_000_000, self.number(31) or 1))
        payload = min(MTU, length)
        return self.data(self.begin(), length, self.chance.choice((0, 0, MTU)) % length, payload)

    def request(self) -> bytes:
        length = self.chance.choice((1, 100, MTU))
        return self.data(self.begin(), length, 0, length)

    def replay(self) -> bytes:
        return self.chance.choice(self.sent)

    def about_own(self) -> bytes:
        kind = self.chance.choice((GRANT, RESEND, UNKNOWN, BUSY, NEED_ACK, ACK, FREEZE, START))
        packet = common(kind, *self.rpc())
        if kind == GRANT:
            packet += struct.pack(">IB", self.number(32), self.chance.getrandbits(8))
        elif kind == RESEND:
            packet += struct.pack(">IIB", self.number(32), self.number(32), 0)
        elif kind == ACK:
            pairs = [self.rpc() for _ in range(5)]
            packet += struct.pack(">H", self.chance.randint(0, 7))
            packet += b"".join(struct.pack(">QH", number, port) for port, _, number in pairs)
        elif kind == START:
            packet += struct.pack(">I", self.number(32))
        return packet

    def cutoffs(self) -> bytes:
        levels = [self.number(32) for _ in range(8)]
        return common(CUTOFFS, *self.rpc()) + struct.pack(">8IH", *levels, self.number(16))

    # And how they travel.

    def wrapped(self, way: str, packet: bytes, target: str) -> bytes:
        source = self.own
        if way == "spoofed":
            source = self.chance.choice([t for t in self.targets if t != target] or [self.own])
        if way == "udp":
            size, total = 8 + len(packet), 0
            head = struct.pack(">HHH", UDP_PORT, UDP_PORT, size)
            if is_v6(target):
                ends = pseudo(source, target, socket.IPPROTO_UDP, size)
                total = checksum(ends + head + b"\0\0" + packet) or 0xFFFF
            return ip(source, target, socket.IPPROTO_UDP, head + struct.pack(">H", total) + packet)
        if way == "icmp":
            # An error of a packet that the target is said to have sent to another.
            quoted = ip(target, self.chance.choice(self.targets), PROTOCOL, packet)
            if is_v6(target):
                return self.icmp6(source, target, quoted)
            quoted = quoted[: self.chance.choice((20, 24, 28, 48, 576))]
            kind, code = self.chance.choice(((3, 0), (3, 1), (3, 2), (3, 3), (3, 4), (11, 0)))
            body = struct.pack(">I", self.chance.choice((0, 68, 576, 1500))) + quoted
            total = checksum(struct.pack(">BBH", kind, code, 0) + body)
            return ip(source, target, 1, struct.pack(">BBH", kind, code, total) + body)
        return ip(source, target, PROTOCOL, packet)

    def icmp6(self, source: str, target: str, quoted: bytes) -> bytes:
        quoted = quoted[: self.chance.choice((40, 44, 48, 68, 576))]
        errors = ((1, 0), (1, 1), (1, 3), (1, 4), (2, 0), (3, 0), (4, 0), (4, 1))
        kind, code = self.chance.choice(errors)
        body = struct.pack(">I", self.chance.choice((0, 68, 1280, 1500))) + quoted
        ends = pseudo(source, target, socket.IPPROTO_ICMPV6, 4 + len(body))
        total = checksum(ends + struct.pack(">BBH", kind, code, 0) + body)
        head = struct.pack(">BBH", kind, code, total)
        return ip(source, target, socket.IPPROTO_ICMPV6, head + body)

    def stories(self, only: str) -> Iterator[tuple[str, bytes, str]]:
        """(lie and way, packet, target) without end."""
        while True:
            way = self.chance.choice(self.ways)
            lie = only or self.chance.choice(list(self.lies))
            target = self.chance.choice(self.targets)
            for _ in range(BURST):
                packet = self.lies[lie]()
                self.sent = [*self.sent[-300:], packet] if self.chance.random() < 0.1 else self.sent
                yield f"{lie}/{way}", self.wrapped(way, packet, target), target

    def hear(self, packet: bytes) -> None:
        """An answer, with its header of IPv4, as raw sockets give it: its RPC exists."""
        homa = packet if is_v6(self.own) else packet[(packet[0] & 15) * 4 :]
        if len(homa) >= 28:
            sport, dport = struct.unpack(">HH", homa[:4])
            (number,) = struct.unpack(">Q", homa[20:28])
            self.ids = [*self.ids[-500:], (sport, dport, number ^ 1)]
            self.sent = [*self.sent[-300:], homa[:MTU]]


def main(seed: int, seconds: float, rate: float, own: str, targets: list[str], only: str) -> None:
    liar = Liar(seed, own, targets)
    family = socket.AF_INET6 if is_v6(own) else socket.AF_INET
    out = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
    ears = socket.socket(family, socket.SOCK_RAW, PROTOCOL)
    done: Counter[str] = Counter()
    begun = time.monotonic()
    print("going", flush=True)
    for number, (what, packet, target) in enumerate(liar.stories(only)):
        if time.monotonic() - begun > seconds:
            break
        ahead = number / rate - (time.monotonic() - begun)
        # What is heard does not make it faster.
        while ahead > 0 or number % 20 == 0:
            heard, _, _ = select.select([ears], [], [], max(ahead, 0))
            if heard:
                liar.hear(ears.recv(65536))
            ahead = number / rate - (time.monotonic() - begun)
            if ahead <= 0:
                break
        try:
            out.sendto(packet, (target, 0))
            done[what] += 1
        except OSError:
            done["not sent"] += 1
    print(
        f"{sum(done.values())} packets, seed {seed}:",
        *(f"{k} {n}" for k, n in sorted(done.items())),
    )


if __name__ == "__main__":
    words = sys.argv[1:]
    kind = words.pop()[4:] if words[-1].startswith("lie=") else ""
    main(int(words[0]), float(words[1]), float(words[2]), words[3], words[4:], kind)
