# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Packets as bytes: IPv4 and IPv6, TCP with its options, ICMP errors. It trusts nothing that it
decodes: what cannot be read is a Failed with the reason."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, replace
from typing import Any, Union

from lab.pkt.errors import BadScript, Failed
from lab.pkt.script import IcmpPacket, Option

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

TCP, ICMP, ICMP6 = 6, 1, 58
TTL = 255  # of what arrives, as packetdrill has it
MTU_LIMIT = 65535

# Letter and bit of each flag, in the order in which packetdrill writes them.
FLAGS = (
    ("F", 0x001),
    ("S", 0x002),
    ("R", 0x004),
    ("P", 0x008),
    (".", 0x010),
    ("U", 0x020),
    ("E", 0x040),
    ("W", 0x080),
    ("A", 0x100),
)

_KINDS = {"eol": 0, "nop": 1, "mss": 2, "wscale": 3, "sackOK": 4, "sack": 5, "TS": 8}
_KINDS |= {"md5": 19, "FO": 34, "FOEXP": 254}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_LENGTHS = {"mss": 4, "wscale": 3, "sackOK": 2, "TS": 10}
_FORMATS = {"mss": ">H", "wscale": ">B", "TS": ">II"}
_FOEXP_MAGIC = b"\xf9\x89"

_UNREACHABLE4: tuple[str, ...] = (
    *("net_unreachable", "host_unreachable", "protocol_unreachable", "port_unreachable"),
    *("frag_needed", "source_route_failed", "net_unknown", "host_unknown"),
    *("source_host_isolated", "net_prohibited", "host_prohibited", "net_unreachable_for_tos"),
    *("host_unreachable_for_tos", "packet_filtered", "precedence_violation", "precedence_cutoff"),
)
_UNREACHABLE6: tuple[str, ...] = (
    "no_route",
    "admin_prohibited",
    "not_neighbour",
    "address_unreachable",
)
_UNREACHABLE6 += ("port_unreachable",)
_ICMP4 = {
    "unreachable": (3, _UNREACHABLE4),
    "source_quench": (4, ()),
    "redirect": (5, ()),
    "time_exceeded": (11, ()),
    "parameter_problem": (12, ()),
}
_ICMP6 = {
    "unreachable": (1, _UNREACHABLE6),
    "packet_too_big": (2, ()),
    "time_exceeded": (3, ("exceeded_hop_limit", "exceeded_frag_time")),
    "parameter_problem": (4, ("header_field", "unknown_next_header", "unknown_option")),
}


@dataclass(frozen=True)
class Segment:
    """A TCP packet of the wire."""

    source: Address
    destination: Address
    source_port: int
    destination_port: int
    seq: int
    ack: int
    flags: frozenset[str]
    window: int
    urgent: int = 0
    options: tuple[Option, ...] = ()
    payload: bytes = b""
    tos: int = 0
    ttl: int = TTL

    @property
    def length(self) -> int:
        return len(self.payload)

    @property
    def ace(self) -> int:
        """The three bits that AccECN makes a counter of."""
        return 4 * ("A" in self.flags) + 2 * ("W" in self.flags) + ("E" in self.flags)

    def with_(self, **changes: Any) -> Segment:
        return replace(self, **changes)


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _pseudo(source: Address, destination: Address, protocol: int, length: int) -> bytes:
    if source.version == 4:
        return source.packed + destination.packed + struct.pack(">BBH", 0, protocol, length)
    return source.packed + destination.packed + struct.pack(">II", length, protocol)


def _ip(
    source: Address, destination: Address, protocol: int, tos: int, ttl: int, body: bytes
) -> bytes:
    if source.version == 4:
        total = 20 + len(body)
        if total > MTU_LIMIT:
            raise BadScript(f"a packet of {total} bytes does not fit into IPv4")
        head = struct.pack(">BBHHHBBH", 0x45, tos, total, 0, 0x4000, ttl, protocol, 0)
        head += source.packed + destination.packed
        return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + body
    if len(body) > MTU_LIMIT:
        raise BadScript(f"a payload of {len(body)} bytes does not fit into IPv6")
    head = struct.pack(">IHBB", 6 << 28 | tos << 20, len(body), protocol, ttl)
    return head + source.packed + destination.packed + body


def encode_options(options: tuple[Option, ...]) -> bytes:
    """As they stand, filled up to a multiple of four with zeroes, as packetdrill does."""
    out = b""
    for option in options:
        kind = _KINDS[option.name]
        if option.name in ("nop", "eol"):
            out += bytes([kind])
            continue
        if option.name == "sack":
            body = struct.pack(f">{len(option.values)}I", *option.values)
        elif option.name in _FORMATS:
            body = struct.pack(_FORMATS[option.name], *option.values)
        else:
            body = (_FOEXP_MAGIC if option.name == "FOEXP" else b"") + option.data
        out += bytes([kind, 2 + len(body)]) + body
    out += b"\0" * (-len(out) % 4)
    if len(out) > 40:
        raise BadScript(f"{len(out)} bytes of TCP options; there is room for 40")
    return out


def encode(segment: Segment) -> bytes:
    options = encode_options(segment.options)
    bits = sum(bit for letter, bit in FLAGS if letter in segment.flags)
    head = struct.pack(
        ">HHIIHHHH",
        segment.source_port,
        segment.destination_port,
        segment.seq,
        segment.ack,
        (5 + len(options) // 4) << 12 | bits,
        segment.window,
        0,
        segment.urgent,
    )
    body = head + options + segment.payload
    pseudo = _pseudo(segment.source, segment.destination, TCP, len(body))
    body = body[:16] + struct.pack(">H", checksum(pseudo + body)) + body[18:]
    return _ip(segment.source, segment.destination, TCP, segment.tos, segment.ttl, body)


def encode_icmp(packet: IcmpPacket, from_: Address, about: Segment, length: int) -> bytes:
    """The error `packet`, sent by `from_` to the sender of `about`, whose header it quotes.
    `length`: of the quoted segment's payload; it is not quoted itself."""
    six = about.source.version == 6
    types = _ICMP6 if six else _ICMP4
    kind, codes = types.get(packet.type, (_numbered(packet.type, "type_"), ()))
    if kind is None:
        raise BadScript(f"ICMP of IPv{6 if six else 4} has no type '{packet.type}'")
    code = 0
    if packet.code is not None:
        number = _numbered(packet.code, "code_")
        if packet.code in codes:
            number = codes.index(packet.code)
        if number is None:
            raise BadScript(f"ICMP '{packet.type}' has no code '{packet.code}'")
        code = number
    rest = struct.pack(">I", packet.mtu or 0)
    whole = encode(about.with_(payload=b"\0" * length))
    quoted = whole[: (40 if six else 20) + 20]
    body = struct.pack(">BBH", kind, code, 0) + rest + quoted
    protocol = ICMP6 if six else ICMP
    pseudo = _pseudo(from_, about.source, protocol, len(body)) if six else b""
    body = body[:2] + struct.pack(">H", checksum(pseudo + body)) + body[4:]
    return _ip(from_, about.source, protocol, packet.ip.tos or 0, packet.ip.ttl or TTL, body)


def _numbered(text: str, prefix: str) -> int | None:
    digits = text.removeprefix(prefix)
    if digits == text or not digits.isdigit() or int(digits) > 255:
        return None
    return int(digits)


def decode(packet: bytes) -> Segment:
    """What the engine sent; Failed if it is no correct TCP packet."""
    if len(packet) < 20 or packet[0] >> 4 not in (4, 6):
        raise Failed(f"what was sent is no IP packet: {packet[:40].hex(' ')}")
    reader = _decode4 if packet[0] >> 4 == 4 else _decode6
    source, destination, protocol, tos, ttl, body = reader(packet)
    if protocol != TCP:
        raise Failed(f"a packet of protocol {protocol} was sent, which is not TCP")
    if len(body) < 20 or len(body) < (body[12] >> 4) * 4 or body[12] >> 4 < 5:
        raise Failed(f"the TCP header that was sent is cut off: {body[:60].hex(' ')}")
    if checksum(_pseudo(source, destination, TCP, len(body)) + body):
        raise Failed("the TCP checksum of what was sent is wrong")
    fields = struct.unpack(">HHIIHHHH", body[:20])
    head = (fields[4] >> 12) * 4
    if fields[4] & 0xE00:
        raise Failed("reserved bits of the TCP header that was sent are set")
    flags = frozenset(letter for letter, bit in FLAGS if fields[4] & bit)
    options = decode_options(body[20:head])
    return Segment(
        source,
        destination,
        fields[0],
        fields[1],
        fields[2],
        fields[3],
        flags,
        fields[5],
        fields[7],
        options,
        body[head:],
        tos,
        ttl,
    )


def _decode4(packet: bytes) -> tuple[Address, Address, int, int, int, bytes]:
    head, total = (packet[0] & 15) * 4, struct.unpack(">H", packet[2:4])[0]
    if head < 20 or total != len(packet) or head > total:
        raise Failed(f"the IPv4 header that was sent says {total} bytes, there are {len(packet)}")
    if checksum(packet[:head]):
        raise Failed("the IPv4 checksum of what was sent is wrong")
    source, destination = (ipaddress.IPv4Address(packet[n : n + 4]) for n in (12, 16))
    return (source, destination, packet[9], packet[1], packet[8], packet[head:])


def _decode6(packet: bytes) -> tuple[Address, Address, int, int, int, bytes]:
    if len(packet) < 40 or struct.unpack(">H", packet[4:6])[0] != len(packet) - 40:
        raise Failed(f"the IPv6 header that was sent does not fit its {len(packet)} bytes")
    source, destination = (ipaddress.IPv6Address(packet[n : n + 16]) for n in (8, 24))
    tos = struct.unpack(">H", packet[:2])[0] >> 4 & 0xFF
    return (source, destination, packet[6], tos, packet[7], packet[40:])


def decode_options(data: bytes) -> tuple[Option, ...]:
    found = []
    while data:
        kind = data[0]
        if kind in (0, 1):
            found.append(Option(_NAMES[kind]))
            data = data[1:]
            continue
        length = data[1] if len(data) > 1 else 0
        if length < 2 or length > len(data):
            raise Failed(f"a TCP option of kind {kind} that was sent has a length of {length}")
        found.append(_decoded(kind, data[2:length]))
        data = data[length:]
    return tuple(found)


def _decoded(kind: int, body: bytes) -> Option:
    name = _NAMES.get(kind, f"option {kind}")
    if name == "sack" and body and len(body) % 8 == 0:
        return Option(name, struct.unpack(f">{len(body) // 4}I", body))
    if name in _LENGTHS and len(body) == _LENGTHS[name] - 2:
        values = struct.unpack(_FORMATS[name], body) if name in _FORMATS else ()
        return Option(name, values)
    if name == "FOEXP":
        if body[:2] == _FOEXP_MAGIC:
            return Option(name, (), body[2:])
        name = f"option {kind}"
    if name in _LENGTHS or name == "sack":
        raise Failed(f"the TCP option {name} that was sent has {len(body) + 2} bytes")
    return Option(name, (), body)
