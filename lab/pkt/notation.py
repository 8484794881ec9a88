# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Packets in the language of the scripts, for messages."""

from __future__ import annotations

from lab.pkt.script import SECOND, IcmpPacket, IpInfo, Option, TcpPacket
from lab.pkt.wire import FLAGS, Segment

_ECN = ("noecn", "ect1", "ect0", "ce")
U32 = 0xFFFFFFFF


def seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / SECOND:.6f}"


def flags(which: frozenset[str]) -> str:
    """In the order in which packetdrill reads them: the dot is the last."""
    order = "SFRPUEWA."
    known = {letter for letter, _ in FLAGS}
    return "".join(letter for letter in order if letter in which & known) or "-"


def option(one: Option) -> str:
    if one.name == "TS":
        return f"TS val {one.values[0]} ecr {one.values[1]}"
    if one.name == "sack":
        blocks = zip(one.values[::2], one.values[1::2])
        return "sack " + " ".join(f"{left}:{right}" for left, right in blocks)
    words = [one.name, *map(str, one.values)]
    return " ".join(words + ([one.data.hex()] if one.data else []))


def options(all_: tuple[Option, ...]) -> str:
    return "<" + ",".join(option(o) for o in all_) + ">" if all_ else ""


def ip(info: IpInfo) -> str:
    if info.ecn is not None:
        return f"[{_ECN[info.ecn] if info.ecn >= 0 else 'ect01'}]"
    if info.tos is not None:
        return f"[tos {info.tos:#x}]"
    return f"[ttl {info.ttl}]" if info.ttl is not None else ""


def scripted(packet: TcpPacket) -> str:
    """A packet as a script says it."""
    if packet.ace is not None:
        shown = flags(packet.flags - {"."}).replace("-", "") + f".{packet.ace}"
    else:
        shown = flags(packet.flags)
    parts = ["<" if packet.inbound else ">", ip(packet.ip)]
    if packet.ports:
        parts.append(f"{packet.ports[0]} > {packet.ports[1]}")
    parts += [shown, _range(packet.seq, packet.length)]
    if "." in packet.flags:
        parts.append(f"ack {packet.ack}")
    if packet.window is not None:
        parts.append(f"win {packet.window}")
    if packet.urgent:
        parts.append(f"urg {packet.urgent}")
    parts.append("<...>" if packet.options is None else options(packet.options))
    return " ".join(p for p in parts if p)


def segment(sent: Segment, *, inbound: bool, like: TcpPacket | None = None) -> str:
    """A packet of the wire, its numbers already the script's. `like`: what it is compared with;
    only the fields of the IP header that this names are shown."""
    info = IpInfo()
    if like is not None and like.ip != IpInfo():
        ecn = sent.tos & 3 if like.ip.ecn is not None else None
        tos = sent.tos if like.ip.tos is not None else None
        info = IpInfo(ecn, tos, sent.ttl if like.ip.ttl is not None else None)
    elif sent.tos & 3:
        info = IpInfo(ecn=sent.tos & 3)
    ace = sent.ace if like is not None and like.ace is not None else None
    shown = sent.flags - set("EWA") if ace is not None else sent.flags
    ports = (sent.source_port, sent.destination_port) if like is not None and like.ports else None
    return scripted(
        TcpPacket(
            inbound,
            shown,
            sent.seq,
            sent.length,
            sent.ack,
            sent.window,
            sent.urgent,
            sent.options,
            info,
            ports,
            ace,
        )
    )


def icmp(packet: IcmpPacket) -> str:
    parts = ["<", ip(packet.ip), "icmp", packet.type, packet.code or ""]
    if packet.mtu is not None:
        parts.append(f"mtu {packet.mtu}")
    parts.append(f"[{_range(packet.seq, packet.length)}]")
    return " ".join(p for p in parts if p)


def _range(seq: int, length: int) -> str:
    return f"{seq}:{(seq + length) & U32}({length})"
