# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Reads a packet: what stands behind the time from "<" or ">" on."""

from __future__ import annotations

import re

from lab.pkt.cursor import Cursor
from lab.pkt.errors import BadScript, Unsupported
from lab.pkt.script import IcmpPacket, IpInfo, Option, TcpPacket

U8, U16, U32 = 0xFF, 0xFFFF, 0xFFFFFFFF
_ECN = {"noecn": 0, "ect1": 1, "ect0": 2, "ce": 3, "ect01": -1}
_FLAGS = frozenset("SFRPUEWA.")
_TUNNELS = ("ipv4", "ipv6", "gre", "GREv0", "mpls", "psp", "esp")


def packet(at: Cursor) -> TcpPacket | IcmpPacket:
    inbound = at.step().text == "<"
    if at.sees(*_TUNNELS):
        raise Unsupported(f"packets in packets ({at.now.text})")
    ip = _ip_info(at, inbound)
    if at.sees("udp"):
        raise Unsupported("UDP; the engine is TCP's")
    if at.take("icmp"):
        return _icmp(at, inbound, ip)
    ports = _ports(at)
    flags, ace = _flags(at)
    seq, length = _range(at)
    ack = at.integer("an acknowledgement number", U32) if at.take("ack") else 0
    window = at.integer("a window", U16) if at.take("win") else None
    urgent = at.integer("an urgent pointer", U16) if at.take("urg") else 0
    options = _options(at)
    if options is None and inbound:
        raise BadScript("<...> says nothing of a packet that arrives")
    if at.sees("{"):
        raise Unsupported("packets that are changed at random ({...} behind a packet)")
    return TcpPacket(inbound, flags, seq, length, ack, window, urgent, options, ip, ports, ace)


def _ip_info(at: Cursor, inbound: bool) -> IpInfo:
    """[ect0], [ce], [tos 0x2], [ttl 64], also in round brackets."""
    if not at.sees("[", "("):
        return IpInfo()
    closing = {"[": "]", "(": ")"}[at.step().text]
    ecn = tos = ttl = None
    while not at.take(closing):
        if at.now.text in _ECN:
            ecn = _ECN[at.step().text]
        elif at.take("tos"):
            tos = at.integer("a type of service", U8)
        elif at.take("ttl"):
            ttl = at.integer("a time to live", U8)
        elif at.sees("flowlabel"):
            raise Unsupported("flow labels of IPv6")
        else:
            raise at.unexpected("ect0, ect1, ect01, ce, noecn, tos, ttl or flowlabel")
        at.take(",")
    if ecn == -1 and inbound:
        raise BadScript("[ect01] says nothing of a packet that arrives")
    return IpInfo(ecn, tos, ttl)


def _ports(at: Cursor) -> tuple[int, int] | None:
    if not (at.kind("integer") and at.after().text == ">"):
        return None
    source = at.integer("a source port", U16)
    at.must(">")
    return source, at.integer("a destination port", U16)


def _flags(at: Cursor) -> tuple[frozenset[str], int | None]:
    """S. or P or . or - or, with the ACE counter of AccECN behind the dot, .5 or P.5."""
    text = ""
    if at.take("-"):
        return frozenset(), None
    if at.kind("word"):
        text += at.step().text
    if at.kind("float"):
        text += at.step().text
    elif at.take("."):
        text += "."
    match = re.fullmatch(r"([A-Z]*\.?)([0-7]?)", text)
    if not text or not match or not set(match[1]) <= _FLAGS:
        if text:
            raise BadScript(f"'{text}' are no flags; they are of S F R P . U E W A")
        raise at.unexpected("flags (S F R P . U E W A, or -)")
    ace = int(match[2]) if match[2] else None
    if ace is not None and set(match[1]) & set("EWA"):
        raise BadScript("the flags E, W and A stand beside a number that means the same bits")
    return frozenset(match[1]), ace


def _range(at: Cursor) -> tuple[int, int]:
    seq = at.integer("a sequence number", U32)
    at.must(":")
    end = at.integer("the sequence number behind the last byte", U32)
    at.must("(")
    length = at.integer("a length", U16)
    at.must(")")
    if (seq + length) & U32 != end:
        raise BadScript(f"{seq}:{end}({length}): {seq} and {length} bytes are not {end}")
    return seq, length


def _options(at: Cursor) -> tuple[Option, ...] | None:
    if not at.take("<"):
        return ()
    if at.take("..."):
        at.must(">")
        return None
    found = [_option(at)]
    while at.take(","):
        found.append(_option(at))
    at.must(">")
    return tuple(found)


def _option(at: Cursor) -> Option:
    name = at.now.text
    if not at.kind("word"):
        raise at.unexpected("a TCP option")
    at.step()
    if name in ("nop", "eol", "sackOK"):
        return Option(name)
    if name == "mss":
        return Option(name, (at.integer("an MSS", U16),))
    if name == "wscale":
        return Option(name, (at.integer("a shift", U8),))
    if name == "TS":
        at.must("val")
        value = at.integer("a time stamp", U32)
        at.must("ecr")
        return Option(name, (value, at.integer("an echoed time stamp", U32)))
    if name == "sack":
        return _sack(at)
    if name in ("FO", "FOEXP", "md5"):
        text = at.step().text if at.kind("word", "integer") else ""
        if len(text) % 2 or re.search("[^0-9a-fA-F]", text):
            raise BadScript(f"'{text}' is no row of bytes in hexadecimal digits")
        return Option(name, (), bytes.fromhex(text))
    raise Unsupported(f"the TCP option '{name}'")


def _sack(at: Cursor) -> Option:
    edges: list[int] = []
    while at.kind("integer"):
        edges.append(at.integer("the left edge of a block", U32))
        at.must(":")
        edges.append(at.integer("the right edge of a block", U32))
    if not edges:
        raise at.unexpected("a block such as 1001:2001")
    return Option("sack", tuple(edges))


def _icmp(at: Cursor, inbound: bool, ip: IpInfo) -> IcmpPacket:
    if not inbound:
        raise Unsupported("ICMP packets that are sent; the engine is TCP's")
    kind = at.step().text if at.kind("word") else ""
    code = mtu = None
    if at.kind("word") and not at.sees("mtu", "id"):
        code = at.step().text
    if at.take("mtu"):
        mtu = at.integer("an MTU", U32)
    if at.sees("id"):
        raise Unsupported("ICMP echoes")
    seq = length = 0
    if at.take("["):
        if at.sees("udp", "raw"):
            raise Unsupported(f"ICMP errors about {at.now.text.upper()}")
        seq, length = _range(at)
        at.must("]")
    return IcmpPacket(inbound, kind, code, mtu, seq, length, ip)
