# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The hash of receive side scaling, from the frame's bytes."""

from __future__ import annotations

from hw.tb.layout import constants
from hw.tb.reference import Verdict, judge

KEY = bytes.fromhex(
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
)
_KEY_BITS = int.from_bytes(KEY, "big")


def toeplitz(data: bytes) -> int:
    """Microsoft's definition: for each bit of the data that is set, 32 bits of the key."""
    result = 0
    bits = int.from_bytes(data, "big")
    for i in range(8 * len(data)):
        if bits >> (8 * len(data) - 1 - i) & 1:
            result ^= _KEY_BITS >> (8 * len(KEY) - 32 - i) & 0xFFFFFFFF
    return result


def of_rpc(src: int, dst: int, sport: int, dport: int, rpc: int) -> int:
    """The hash of a Homa packet: the same for both directions of the RPC."""
    data = (src ^ dst).to_bytes(16, "big") + (rpc >> 1).to_bytes(8, "big") + bytes(8)
    return toeplitz(data + (sport ^ dport).to_bytes(2, "big") + bytes(2))


def of_frame(frame: bytes) -> tuple[int, Verdict]:
    """The hash of any frame, and what the frame is."""
    c = constants()
    verdict = judge(frame)
    said = verdict.said
    kind = said["class_"]
    if kind in (c["CLASS_NOT_IP"], c["CLASS_BAD"]) or verdict.bad:
        return 0, verdict
    if len(verdict.packet) >= 28:
        packet = verdict.packet
        sport, dport = int.from_bytes(packet[:2], "big"), int.from_bytes(packet[2:4], "big")
        rpc = int.from_bytes(packet[20:28], "big")
        return of_rpc(said["src"], said["dst"], sport, dport, rpc), verdict
    size = 4 if said["v4"] else 16
    data = said["src"].to_bytes(size, "big") + said["dst"].to_bytes(size, "big")
    if kind == c["CLASS_PORTS"]:
        data += said["out_sport"].to_bytes(2, "big") + said["out_dport"].to_bytes(2, "big")
    return toeplitz(data), verdict
