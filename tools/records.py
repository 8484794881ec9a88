# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The records of a trace, as `host/homad/fast/homad_trace.h` lays them out, and what is in a Homa header."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from typing import NamedTuple

from lab.errors import LabError

CLIENT, TCP = 1, 2  # flags
RX, TX, LOCAL, SUBMIT, DELIVER, END, LOST = range(1, 8)
PACKETS = (RX, TX, LOCAL)

_LAYOUT = struct.Struct("=QQQBBBBHHIiHHHH16s16s")
BYTES = _LAYOUT.size

DATA, GRANT, RESEND, UNKNOWN, BUSY, CUTOFFS, FREEZE, NEED_ACK, ACK, START = range(0x10, 0x1A)
TYPES = dict(
    zip(
        range(0x10, 0x1A),
        "DATA GRANT RESEND RPC_UNKNOWN BUSY CUTOFFS FREEZE NEED_ACK ACK START_MSG".split(),
        strict=True,
    )
)


class Record(NamedTuple):
    """One record; `data` are the captured bytes of a packet, from Homa's or TCP's header on."""

    at_ns: int
    app: int
    rpc: int
    kind: int
    port: int
    prio: int
    flags: int
    captured: int
    thread: int
    length: int
    error: int
    own_port: int
    peer_port: int
    src_encap: int
    dst_encap: int
    src: bytes
    dst: bytes
    data: bytes

    @property
    def client(self) -> bool:
        """RPC events: this host is the client; packets: an even id is a client's."""
        return self.rpc % 2 == 0 if self.kind in PACKETS else bool(self.flags & CLIENT)

    @property
    def tcp(self) -> bool:
        """It is a TCP segment."""
        return self.kind in PACKETS and bool(self.flags & TCP)

    @property
    def peer(self) -> str:
        """Address of the other side."""
        return address(self.src if self.kind == RX else self.dst)


class Reader:
    """Cuts a stream of bytes into records."""

    def __init__(self, record_bytes: int) -> None:
        if record_bytes != BYTES:
            raise LabError(
                f"homad's trace has records of {record_bytes} bytes, not {BYTES}: "
                "it is of another version; use the tools that came with it"
            )
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[Record]:
        """All whole records there are now."""
        data = self._rest + chunk
        at, end = 0, len(data)
        while end - at >= BYTES:
            fields = _LAYOUT.unpack_from(data, at)
            captured = fields[7]
            after = at + BYTES + (captured + 7 & ~7)
            if after > end:
                break
            yield Record._make((*fields, data[at + BYTES : at + BYTES + captured]))
            at = after
        self._rest = data[at:]


def address(ip: bytes) -> str:
    """16 bytes as text; IPv4 without its prefix."""
    v6 = ipaddress.IPv6Address(ip)
    return str(v6.ipv4_mapped or v6)


class Packet(NamedTuple):
    """What a Homa header says. `name`: "DATA"; `args`: its fields for people."""

    kind: int
    name: str
    args: dict[str, int]


def packet(record: Record) -> Packet:
    """The header of a packet record; what was not captured is left out."""
    data = record.data
    kind = data[11] if len(data) >= 28 else 0
    args: dict[str, int] = {}
    if kind == DATA and len(data) >= 56:
        length, incoming = struct.unpack_from(">II", data, 28)
        offset = struct.unpack_from(">I", data, 52)[0]
        if offset == 0xFFFFFFFF:
            offset = struct.unpack_from(">I", data, 4)[0]
        size = record.length - 56
        args = {"offset": offset, "bytes": size}
        if length:  # 0: not known, from the kernel
            args |= {"of": length, "unscheduled_to": incoming}
        if data[48]:
            args["retransmission"] = 1
    elif kind == GRANT and len(data) >= 33:
        args = {"grant_to": struct.unpack_from(">I", data, 28)[0], "grant_priority": data[32]}
    elif kind == RESEND and len(data) >= 37:
        start, count = struct.unpack_from(">II", data, 28)
        args = {"resend_from": start, "resend_bytes": count, "resend_priority": data[36]}
    args["priority"] = record.prio
    return Packet(kind, TYPES.get(kind, f"type {kind:#x}"), args)


_FLAGS = "FIN SYN RST PSH ACK URG ECE CWR".split()


def segment(record: Record) -> str:
    """A TCP segment in words; what was not captured is left out."""
    data = record.data
    if len(data) < 20:
        return f"{record.length} bytes of a segment"
    seq, ack, offset, flags, window = struct.unpack_from(">IIBBH", data, 4)
    names = ",".join(name for bit, name in enumerate(_FLAGS) if flags >> bit & 1)
    text = f"{names or 'no flag'} seq {seq}"
    if "ACK" in names:
        text += f" ack {ack}"
    text += f" window {window}"
    size = record.length - (offset >> 4) * 4
    if size > 0:
        text += f" bytes {size}"
    if record.prio & 3 == 3:
        text += " congested"
    return text
