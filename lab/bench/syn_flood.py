# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""SYNs with addresses of others as a job of run_jobs(): so many a second to one port, between two times of the
monotonic clock. All are made before, so that sending them takes little of the processors that are measured.

    python3 syn_flood.py ADDRESS PORT RATE BEGIN END JSON-FILE
"""

from __future__ import annotations

import json
import random
import socket
import struct
import sys
import time

SCHEMA = "homa-syn-flood/1"
STRANGERS = "198.18.0.0/15"  # for benchmarks (RFC 2544): nobody has them
_FIRST = (198 << 24) + (18 << 16)
_TURN_S = 0.001  # what is due is sent at once, so often


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def syn(chance: random.Random, address: int, port: int) -> bytes:
    """One SYN with its header of IPv4, whose checksum the kernel fills in."""
    source, number = _FIRST + chance.getrandbits(17), chance.getrandbits(32)
    words = (chance.randrange(1024, 65536), port, number, 0, 6 << 12 | 2, 65535)
    begin, end = struct.pack(">HHIIHH", *words), struct.pack(">HBBH", 0, 2, 4, 1460)
    pseudo = struct.pack(">IIBBH", source, address, 0, 6, len(begin) + len(end) + 2)
    summed = struct.pack(">H", _checksum(pseudo + begin + b"\0\0" + end))
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 0, 0, 0, 64, 6, 0, source, address)
    return ip + begin + summed + end


def flood(packets: list[bytes], address: str, rate: float, begin: float, end: float) -> int:
    """Send them at the times at which they are due; how many were sent until `end`."""
    out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    out.connect((address, 0))
    sent = 0
    while (now := time.monotonic()) < end:
        due = min(len(packets), int((now - begin) * rate)) if now > begin else 0
        for packet in packets[sent:due]:
            out.send(packet)
        sent = max(sent, due)
        time.sleep(_TURN_S)
    return sent


def main(argv: list[str]) -> None:
    """Make them, send them, say how many."""
    address, port, rate = argv[0], int(argv[1]), float(argv[2])
    begin, end = float(argv[3]), float(argv[4])
    number = struct.unpack(">I", socket.inet_aton(address))[0]
    chance = random.Random(port)
    packets = [syn(chance, number, port) for _ in range(int((end - begin) * rate))]
    sent = flood(packets, address, rate, begin, end)
    with open(argv[5], "w", encoding="utf-8") as out:
        json.dump({"schema": SCHEMA, "sent": sent, "seconds": end - begin}, out)


if __name__ == "__main__":
    main(sys.argv[1:])
