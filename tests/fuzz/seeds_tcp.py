#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Seeds for fuzz_tcp: scripts that open a connection from either side, move bytes and close it. The
numbers of the steps are those of enum op there."""

import sys
from pathlib import Path

SEGMENT, AGAIN, ACCEPT, CONNECT, WRITE, READ, SHUTDOWN, CLOSE, TIME, ICMP, OPTION, LISTEN = range(
    12
)
SYN, ACK, FIN, RST = 2, 16, 1, 4
EXACT = bytes([0])


def segment(
    flags: int, how: int, length: int = 0, window: int = 65535, options: bytes = b"\0"
) -> bytes:
    """From the first peer, with the numbers that are expected. `how`: 0 takes `flags` as they are."""
    body = bytes([SEGMENT, 0, flags, how | (0 if length else 8)]) + EXACT + EXACT
    body += window.to_bytes(2, "big")
    if length:
        body += length.to_bytes(2, "big")
    return body + options


def call(op: int, size: int = 0) -> bytes:
    return bytes([op, 0]) + size.to_bytes(2, "big") + b"\0"


def main(target: str) -> None:
    out = Path(target)
    out.mkdir(parents=True, exist_ok=True)
    begin = b"\2\2"
    passive = begin + segment(SYN, 0) + segment(ACK, 1) + bytes([ACCEPT, 0, 0])
    data = segment(ACK, 5, 1000) + segment(ACK, 5, 1000) + call(READ, 4000)
    send = call(WRITE, 5000) + segment(ACK, 1) + bytes([TIME, 20]) + segment(ACK, 1)
    seeds = {
        "passive": passive + data + send + segment(FIN | ACK, 1) + call(CLOSE),
        "reset": passive + data + segment(RST | ACK, 0) + call(CLOSE),
        "active": begin + bytes([CONNECT, 0, 0]) + segment(0, 1) + data + send + call(SHUTDOWN, 1),
        "timeouts": passive + call(WRITE, 3000) + bytes([TIME, 20]) * 8 + call(CLOSE),
        "closed_window": passive
        + call(WRITE, 3000)
        + segment(ACK, 1, 0, 0)
        + bytes([TIME, 20]) * 4,
        "cookies": b"\x22\2" + segment(SYN, 0) + segment(ACK, 1) + bytes([ACCEPT, 0, 0]) + data,
        "icmp": passive + call(WRITE, 3000) + bytes([ICMP, 0, 0, 4, 2, 88]) + bytes([TIME, 20]),
    }
    for name, script in seeds.items():
        (out / name).write_bytes(script)


if __name__ == "__main__":
    main(sys.argv[1])
