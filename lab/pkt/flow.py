# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A connection, between the numbers of its script and those of the wire.

A script counts as tcpdump does: packets with S have sequence numbers of their own, all others
count from the initial ones. What arrives has the script's initial number on the wire, too; the
engine chooses its own, and its time stamps, so those are learned from what it sends.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto

from lab.pkt.config import Config
from lab.pkt.errors import BadScript
from lab.pkt.script import IcmpPacket, Option, TcpPacket
from lab.pkt.wire import TTL, Segment

U32 = 0xFFFFFFFF
# The value of a byte is its position in the stream modulo this, in both directions.
PATTERN = 251
_PERIOD = bytes(range(PATTERN))


def pattern(position: int, length: int) -> bytes:
    begin = position % PATTERN
    return (_PERIOD * ((begin + length) // PATTERN + 1))[begin : begin + length]


class State(Enum):
    NEW = auto()  # socket() was called
    LISTENING = auto()
    PASSIVE = auto()  # something arrived for it
    CONNECTING = auto()  # connect() was called
    OPENING = auto()  # the script has said its SYN


@dataclass
class Sent:
    """What the engine sent, as it was on the wire, and when."""

    time: int
    segment: Segment


@dataclass
class Flow:
    state: State = State.NEW
    fd: int | None = None  # the script's
    remote_port: int = 0
    local_port: int | None = None  # None: the engine chooses it
    script_ports: tuple[int, int] | None = None  # remote, local, if the script names them
    local_isn: int | None = None  # of the wire
    local_isn_script: int = 0
    remote_isn: int = 0
    last_syn: int | None = None  # the sequence number of the last SYN that arrived
    window: int = 0
    stamps: dict[int, int] = field(default_factory=dict)  # script's to the wire's
    first_stamp: tuple[int, int] | None = None  # script's, the wire's
    queue: deque[Sent] = field(default_factory=deque)

    def owns(self, segment: Segment) -> bool:
        if self.state in (State.NEW, State.LISTENING):
            return False
        return segment.destination_port == self.remote_port and (
            self.local_port in (None, segment.source_port)
        )

    def learn(self, segment: Segment) -> None:
        """What is known from the first packets that the engine sends."""
        if self.local_port is None:
            self.local_port = segment.source_port
        if self.local_isn is None and "S" in segment.flags:
            self.local_isn = segment.seq

    def expect(self, packet: TcpPacket, segment: Segment) -> None:
        """`packet` of the script is about to be compared with `segment` of the wire."""
        if "S" not in packet.flags or "S" not in segment.flags:
            return
        again = self.last_syn is not None and segment.ack == (self.last_syn + 1) & U32
        if self.local_isn is None or (again and segment.seq != self.local_isn):
            # A connection, or the next one between the same ports.
            self.local_isn = segment.seq
            self.remote_isn = self.last_syn if again and self.last_syn is not None else 0
        self.local_isn_script = packet.seq

    def _local_offset(self, syn: bool) -> int:
        return (self.local_isn or 0) - (self.local_isn_script if syn else 0)

    def _remote_offset(self, syn: bool) -> int:
        return 0 if syn else self.remote_isn

    def outbound(self, sent: Segment, like: TcpPacket | None = None) -> Segment:
        """What the engine sent, in the script's numbers. With `like`, the time stamps are learned
        from the packet that the script expects."""
        syn = "S" in sent.flags
        remote = self._remote_offset(syn)
        options = tuple(self._outbound_option(o, remote, like) for o in sent.options)
        return sent.with_(
            seq=(sent.seq - self._local_offset(syn)) & U32,
            ack=(sent.ack - remote) & U32 if "." in sent.flags else sent.ack,
            options=options,
        )

    def _outbound_option(self, option: Option, remote: int, like: TcpPacket | None) -> Option:
        if option.name == "sack":
            return Option("sack", tuple((v - remote) & U32 for v in option.values))
        if option.name != "TS":
            return option
        value, echo = option.values
        said = [o for o in (like.options or () if like else ()) if o.name == "TS"]
        if said:
            self.stamps[said[0].values[0]] = value
            self.first_stamp = self.first_stamp or (said[0].values[0], value)
        if self.first_stamp:
            value = (value - self.first_stamp[1] + self.first_stamp[0]) & U32
        return Option("TS", (value, echo))

    def inbound(self, packet: TcpPacket, config: Config) -> list[Segment]:
        """What the script lets arrive, in the numbers of the wire; several segments with --mss."""
        syn = "S" in packet.flags
        if syn and self.last_syn is None:
            self.remote_isn = packet.seq
        if syn:
            self.last_syn = packet.seq
        local = self._local_offset(syn)
        seq = (packet.seq + self._remote_offset(syn)) & U32
        begin = 0 if syn else (packet.seq - 1) & U32
        ack = (packet.ack + local) & U32 if "." in packet.flags else packet.ack
        options = tuple(
            self._inbound_option(o, packet, config, local) for o in packet.options or ()
        )
        if packet.window is not None:
            self.window = packet.window
        ports = (self.remote_port, self.local_port or 0)
        if packet.ports:
            ports = (packet.ports[0] or ports[0], packet.ports[1] or ports[1])
        flags = packet.flags | {
            f for f, bit in (("A", 4), ("W", 2), ("E", 1)) if (packet.ace or 0) & bit
        }
        whole = Segment(
            config.remote,
            config.local,
            *ports,
            seq,
            ack,
            frozenset(flags),
            packet.window or 0,
            packet.urgent,
            options,
            pattern(begin, packet.length),
            packet.ip.tos if packet.ip.tos is not None else packet.ip.ecn or 0,
            packet.ip.ttl or TTL,
        )
        return _cut(whole, config.mss)

    def _inbound_option(
        self, option: Option, packet: TcpPacket, config: Config, local: int
    ) -> Option:
        if option.name == "sack":
            return Option("sack", tuple((v + local) & U32 for v in option.values))
        if option.name != "TS" or "." not in packet.flags:
            return option
        value, echo = option.values
        if echo in self.stamps:
            return Option("TS", (value, self.stamps[echo]))
        if config.ts_ecr_scaled and self.first_stamp:
            return Option("TS", (value, (echo - self.first_stamp[0] + self.first_stamp[1]) & U32))
        raise BadScript(f"ecr {echo}: no packet that was sent had this time stamp")

    def quoted(self, packet: IcmpPacket, config: Config) -> Segment:
        """The header of the packet that an ICMP error is about."""
        seq = (packet.seq + (self.local_isn or 0)) & U32
        ports = (self.local_port or 0, self.remote_port)
        return Segment(config.local, config.remote, *ports, seq, 0, frozenset("."), 0)


def _cut(whole: Segment, mss: int) -> list[Segment]:
    if not mss or whole.length <= mss:
        return [whole]
    pieces = []
    for begin in range(0, whole.length, mss):
        last = begin + mss >= whole.length
        pieces.append(
            whole.with_(
                seq=(whole.seq + begin) & U32,
                payload=whole.payload[begin : begin + mss],
                flags=whole.flags if last else whole.flags - {"F", "P"},
            )
        )
    return pieces
