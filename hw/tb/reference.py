# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the parser should say of a frame: the headers below Homa's as the RFCs have them, written
down once more and in another way than in the RTL; the Homa header as the C codec decodes it."""

from __future__ import annotations

from dataclasses import dataclass

from hw.tb import codec
from hw.tb.frames import HOMA, TCP, UDP, UDP_PORT
from hw.tb.layout import constants

EXTENSIONS = (0, 43, 60)
FRAGMENT = 44
MOST_EXTENSIONS = 2
LONGEST_EXTENSION = 64


@dataclass
class Verdict:
    """`said`: members of homa_meta_t that are to have these values; others may be anything.
    `bad`: what m_bad is at the last beat; `packet`: the Homa packet, if it is one; `arrived`: by
    the card's time, once it has."""

    said: dict[str, int]
    bad: bool = False
    packet: bytes = b""
    arrived: int = 0


def _be(data: bytes) -> int:
    return int.from_bytes(data, "big")


def judge(frame: bytes) -> Verdict:
    """All of it."""
    c = constants()
    vlan = frame[12:14] == b"\x81\x00"
    at = 18 if vlan else 14
    kind = frame[at - 2 : at]
    if len(frame) < at or kind not in (b"\x08\x00", b"\x86\xdd"):
        return Verdict({"class_": c["CLASS_NOT_IP"]})
    v4 = kind == b"\x08\x00"
    ip = frame[at:]
    if len(ip) < (20 if v4 else 40):
        return Verdict({"class_": c["CLASS_BAD"]}, bad=True)
    said = {"vlan": int(vlan), "v4": int(v4), "v6": int(not v4)}
    said["tci"] = _be(frame[14:16]) if vlan else 0
    bad = Verdict({"class_": c["CLASS_BAD"]}, bad=True)
    if v4:
        head = 4 * (ip[0] & 15)
        total = _be(ip[2:4])
        if ip[0] >> 4 != 4 or head < 20 or total < head or total > len(ip):
            return bad
        said |= {"tos": ip[1], "src": _be(ip[12:16]), "dst": _be(ip[16:20])}
        said["sum"] = sum(_be(ip[i : i + 2]) for i in range(0, 20, 2))
        if _be(ip[6:8]) & 0x3FFF:
            return Verdict(said | {"class_": c["CLASS_FRAGMENT"]})
        return _carrier(frame, said, ip[9], at + head, at + total)
    total = 40 + _be(ip[4:6])
    if ip[0] >> 4 != 6 or total > len(ip):
        return bad
    said |= {"tos": _be(ip[:2]) >> 4 & 0xFF, "src": _be(ip[8:24]), "dst": _be(ip[24:40])}
    proto, begin, end = ip[6], at + 40, at + total
    for _ in range(MOST_EXTENSIONS):
        if proto not in EXTENSIONS:
            break
        if begin + 8 > end:
            return Verdict(said | {"class_": c["CLASS_IP"]})
        length = 8 + 8 * frame[begin + 1]
        if length > LONGEST_EXTENSION or begin + length > end:
            return Verdict(said | {"class_": c["CLASS_IP"]})
        proto, begin = frame[begin], begin + length
    if proto == FRAGMENT:
        return Verdict(said | {"class_": c["CLASS_FRAGMENT"]})
    if proto in EXTENSIONS:
        return Verdict(said | {"class_": c["CLASS_IP"]})
    return _carrier(frame, said, proto, begin, end)


def _carrier(frame: bytes, said: dict[str, int], proto: int, begin: int, end: int) -> Verdict:
    """What follows IP's headers, at `begin`; the packet ends at `end`."""
    c = constants()
    body = frame[begin:end]
    if proto == HOMA:
        return _homa(body, begin, said | {"class_": c["CLASS_HOMA"]})
    if not ((proto == UDP and len(body) >= 8) or (proto == TCP and len(body) >= 20)):
        return Verdict(said | {"class_": c["CLASS_IP"]})
    ports = _be(body[:2]), _be(body[2:4])
    said = said | {"out_sport": ports[0], "out_dport": ports[1]}
    other = Verdict(said | {"class_": c["CLASS_PORTS"]})
    if proto == TCP:
        if len(body) < 28 or body[13] != 6 or body[18:20] != b"\xb9\x7d":
            return other
        return _homa(body, begin, said | {"class_": c["CLASS_HOMA_TCP"]})
    if UDP_PORT not in ports:
        return other
    length = _be(body[4:6])
    if length < 8 or length > len(body):
        return Verdict({"class_": c["CLASS_BAD"]})
    said = said | {"class_": c["CLASS_HOMA_UDP"], "no_sum": int(body[6:8] == bytes(2))}
    return _homa(body[8:length], begin + 8, said)


def _homa(packet: bytes, at: int, said: dict[str, int]) -> Verdict:
    decoded = codec.decode(packet)
    said = said | {"at": at, "bytes": len(packet), "error": decoded["error"]}
    if not decoded["error"]:
        said["hdr_len"] = decoded["hdr_len"]
        kind = decoded["type"]
        if kind == 0x10:
            said |= {name: decoded[name] for name in ("offset", "length", "incoming")}
            end = decoded["offset"] + len(packet) - decoded["hdr_len"]
            said["ends"] = int(end == decoded["length"])
        elif kind in (0x11, 0x12):
            said |= {name: decoded[name] for name in ("offset", "level")}
        if kind in (0x12, 0x19):
            said["length"] = decoded["length"]
    return Verdict(said, packet=packet)
