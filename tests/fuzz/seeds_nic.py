#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Seeds for fuzz_nic: Homa and TCP frames of each family, and ICMP errors that quote them."""

import struct
import sys
from pathlib import Path

HOMA = 146
TCP = 6
BODY = struct.pack("!HHI4xB", 40000, 99, 0, 0x10) + bytes(range(40))

SEGMENT = struct.pack("!HHIIBBHHH", 40000, 7000, 1, 2, 0x50, 0x18, 1000, 0, 0) + b"hello"


def ipv4(payload: bytes, proto: int = HOMA) -> bytes:
    """Without a checksum: the target puts it in."""
    head = struct.pack("!BBHHHBBH", 0x45, 0xA0, 20 + len(payload), 0, 0x4000, 64, proto, 0)
    return head + bytes([10, 9, 0, 1, 10, 9, 0, 2]) + payload


def ipv6(payload: bytes, proto: int = HOMA) -> bytes:
    head = struct.pack("!IHBB", 0x6A012345, len(payload), proto, 64)
    return head + bytes([0xFD, 9] + [0] * 13 + [1]) + bytes([0xFD, 9] + [0] * 13 + [2]) + payload


def main(target: str) -> None:
    out = Path(target)
    out.mkdir(parents=True, exist_ok=True)
    mac = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2])
    seeds = {
        "v4": b"\0" + mac + b"\x08\x00" + ipv4(BODY),
        "v4_padded": b"\0" + mac + b"\x08\x00" + ipv4(BODY[:28]) + bytes(18),
        "v6": b"\1" + mac + b"\x86\xdd" + ipv6(BODY),
        "icmp_port": b"\2" + struct.pack("!BBHI", 3, 3, 0, 0) + ipv4(BODY),
        "icmp_mtu": b"\2" + struct.pack("!BBHI", 3, 4, 0, 1300) + ipv4(BODY),
        "icmp6_port": b"\3" + struct.pack("!BBHI", 1, 4, 0, 0) + ipv6(BODY),
        "icmp6_mtu": b"\3" + struct.pack("!BBHI", 2, 0, 0, 1280) + ipv6(BODY),
        "v4_tcp": b"\0" + mac + b"\x08\x00" + ipv4(SEGMENT, TCP),
        "v6_tcp": b"\1" + mac + b"\x86\xdd" + ipv6(SEGMENT, TCP),
        "icmp_tcp": b"\2" + struct.pack("!BBHI", 3, 4, 0, 1300) + ipv4(SEGMENT[:8], TCP),
        "icmp6_tcp": b"\3" + struct.pack("!BBHI", 1, 4, 0, 0) + ipv6(SEGMENT, TCP),
    }
    for name, data in seeds.items():
        (out / name).write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1])
