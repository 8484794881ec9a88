# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A toy in the engine's place: it opens connections from either side, acknowledges at once what
arrives in order, sends what is written in segments, sends the last segment again each second, and
knows nothing else. `Quirks` make it wrong in one way each."""

from __future__ import annotations

import errno
import ipaddress
from dataclasses import dataclass, field

from lab.pkt.config import Config
from lab.pkt.flow import pattern
from lab.pkt.script import SECOND, Option
from lab.pkt.stack import NEVER, Stack
from lab.pkt.wire import Segment, decode, encode

U32 = 0xFFFFFFFF
ISN = 0xFFFFFF00  # so that numbers wrap
RTO = SECOND
STAMP = 777_000


@dataclass
class Quirks:
    ack_flags: str = "."
    ack_seq: int = 0  # is added
    silent: bool = False  # acknowledges nothing
    twice: bool = False  # acknowledges twice
    delay: int = 0  # before an acknowledgement
    short_read: int = 0  # is taken from what read() returns
    wrong_byte: bool = False


@dataclass
class Connection:
    remote: ipaddress.IPv4Address | ipaddress.IPv6Address
    remote_port: int
    local_port: int
    state: str
    seq: int = ISN  # the next one to send
    ack: int = 0
    readable: int = 0
    ended: bool = False
    error: int = 0
    stamps: bool = False
    echo: int = 0
    unacked: Segment | None = None
    due: int = NEVER


@dataclass
class Socket:
    port: int = 0
    backlog: list[Connection] | None = None
    connection: Connection | None = None


@dataclass
class Fake(Stack):
    config: Config
    quirks: Quirks = field(default_factory=Quirks)
    now: int = 0
    out: list[tuple[int, bytes]] = field(default_factory=list)
    sockets: dict[int, Socket] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)
    parameters: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    def close_bed(self) -> None:
        self.closed = True

    def set(self, parameter: str, value: int) -> int:
        if parameter not in ("ecn", "rcvbuf", "rcvbuf_max", "keepalive_ms"):
            return -errno.ENOENT
        self.parameters[parameter] = value
        return 0

    def run(self, now: int) -> None:
        assert now >= self.now
        self.now = now
        for c in self.connections:
            if c.due <= now and c.unacked:
                self.send(c.unacked)
                c.due = now + RTO

    def next(self) -> int:
        due = [c.due for c in self.connections if c.unacked]
        return min([*due, *(t for t, _ in self.out if t > self.now)], default=NEVER)

    def packet_out(self) -> bytes:
        ready = [entry for entry in self.out if entry[0] <= self.now]
        if not ready:
            return b""
        self.out.remove(ready[0])
        return ready[0][1]

    # The protocol

    def send(self, segment: Segment, delay: int = 0) -> None:
        self.out.append((self.now + delay, encode(segment)))

    def segment(self, c: Connection, flags: str, **more: object) -> Segment:
        options = more.pop("options", ())
        if c.stamps:
            nops = () if "S" in flags else (Option("nop"), Option("nop"))
            value = STAMP + self.now // 1_000_000
            options = (*options, *nops, Option("TS", (value & U32, c.echo)))
        ports = (c.local_port, c.remote_port)
        ack = c.ack if "." in flags else 0
        made = Segment(self.config.local, c.remote, *ports, c.seq, ack, frozenset(flags), 65535)
        return made.with_(options=tuple(options), ttl=64, **more)

    def must_arrive(self, c: Connection, segment: Segment) -> None:
        self.send(segment)
        size = segment.length + bool(segment.flags & {"S", "F"})
        c.seq = (c.seq + size) & U32
        c.unacked, c.due = segment, self.now + RTO

    def packet_in(self, packet: bytes) -> None:
        if packet[9 if packet[0] >> 4 == 4 else 6] != 6:
            return
        got = decode(packet)
        for c in self.connections:
            if (c.remote_port, c.local_port) == (got.source_port, got.destination_port):
                return self.arrived(c, got)
        listening = [s for s in self.sockets.values() if s.backlog is not None]
        if "S" in got.flags and any(s.port == got.destination_port for s in listening):
            c = Connection(got.source, got.source_port, got.destination_port, "opening")
            c.ack = (got.seq + 1) & U32
            self.connections.append(c)
            self.stamp(c, got)
            self.must_arrive(c, self.segment(c, "S.", options=(Option("mss", (1460,)),)))
            return None
        c = Connection(got.source, got.source_port, got.destination_port, "none", seq=got.ack)
        c.ack = (got.seq + got.length + ("S" in got.flags)) & U32
        self.send(self.segment(c, "R" if "." in got.flags else "R."))
        return None

    def stamp(self, c: Connection, got: Segment) -> None:
        for option in got.options:
            if option.name == "TS":
                c.stamps, c.echo = True, option.values[0]

    def arrived(self, c: Connection, got: Segment) -> None:
        if "R" in got.flags:
            c.error = errno.ECONNREFUSED if c.state == "connecting" else errno.ECONNRESET
            c.unacked = None
            return
        if "S" in got.flags and c.state == "connecting":
            c.ack, c.state, c.unacked = (got.seq + 1) & U32, "open", None
            self.stamp(c, got)
            self.send(self.segment(c, "."))
            return
        if got.ack == c.seq:
            c.unacked = None
            if c.state == "opening":
                c.state = "open"
                for s in self.sockets.values():
                    if s.backlog is not None and s.port == c.local_port:
                        s.backlog.append(c)
        size = got.length + ("F" in got.flags)
        if not size:
            return
        if got.seq == c.ack:
            self.stamp(c, got)
            c.ack = (c.ack + size) & U32
            c.readable += got.length
            c.ended |= "F" in got.flags
        if not self.quirks.silent:
            ack = self.segment(c, self.quirks.ack_flags)
            ack = ack.with_(seq=(ack.seq + self.quirks.ack_seq) & U32)
            for _ in range(1 + self.quirks.twice):
                self.send(ack, self.quirks.delay)

    # Calls

    def socket(self) -> int:
        fd = 3 + len(self.sockets)
        self.sockets[fd] = Socket()
        return fd

    def bind(self, fd: int, address: bytes, port: int) -> int:
        self.sockets[fd].port = port
        return 0

    def listen(self, fd: int, backlog: int) -> int:
        self.sockets[fd].backlog = []
        return 0

    def connect(self, fd: int, address: bytes, port: int) -> int:
        s = self.sockets[fd]
        if s.connection is None:
            c = s.connection = Connection(self.config.remote, port, 33333, "connecting")
            self.connections.append(c)
            self.must_arrive(c, self.segment(c, "S", options=(Option("mss", (1460,)),)))
            return -errno.EINPROGRESS
        c = s.connection
        return -c.error if c.error else 0 if c.state == "open" else -errno.EALREADY

    def accept(self, fd: int) -> int:
        backlog = self.sockets[fd].backlog
        if not backlog:
            return -errno.EAGAIN
        new = self.socket()
        self.sockets[new].connection = backlog.pop(0)
        return new

    def write(self, fd: int, length: int, flags: int) -> int:
        c = self.sockets[fd].connection
        for begin in range(0, length, 1460):
            position = (c.seq - ISN - 1) & U32
            data = pattern(position, min(1460, length - begin))
            if self.quirks.wrong_byte:
                data = bytes([data[0] ^ 1]) + data[1:]
            last = begin + 1460 >= length
            self.must_arrive(c, self.segment(c, "P." if last else ".", payload=data))
        return length

    def read(self, fd: int, length: int, flags: int) -> int:
        c = self.sockets[fd].connection
        if not c.readable:
            return 0 if c.ended else -c.error or -errno.EAGAIN
        got = min(length, c.readable)
        c.readable -= got
        return got - self.quirks.short_read

    def close(self, fd: int) -> int:
        s = self.sockets.get(fd)
        if s is None:
            return -errno.EBADF
        if s.connection and not s.connection.error:
            self.must_arrive(s.connection, self.segment(s.connection, "F."))
        return 0

    def shutdown(self, fd: int, how: int) -> int:
        return self.close(fd)

    def setsockopt(self, fd: int, level: int, name: int, value: bytes) -> int:
        return 0 if (level, name) == (6, 1) else -errno.ENOPROTOOPT

    def getsockopt(self, fd: int, level: int, name: int, room: int) -> int | bytes:
        if (level, name) != (1, 4):
            return -errno.ENOPROTOOPT
        c = self.sockets[fd].connection
        return c.error.to_bytes(4, "little")

    def poll(self, fd: int) -> int:
        s = self.sockets[fd]
        if s.connection is None:
            return 1 if s.backlog else 0
        return (1 if s.connection.readable or s.connection.ended else 0) | 4

    def info(self, fd: int, field: str) -> int | None:
        return {"state": 1, "snd_cwnd": 10, "rto": 1_000_000}.get(field)
