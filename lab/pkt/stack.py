# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a script runs on: the engine behind the shared library of tests/pkt/bed.c, or anything
that does the same (the tests have a toy).

All times are virtual, in nanoseconds. Results are those of system calls: negative errno on error,
-EAGAIN where a call would block.
"""

from __future__ import annotations

import abc
import ctypes
import errno
import os
from pathlib import Path

from lab.pkt.errors import BadScript
from lab.pkt.wire import Address

NEVER = (1 << 64) - 1
_PACKET_ROOM = 65536 + 64


class Stack(abc.ABC):
    @abc.abstractmethod
    def close_bed(self) -> None:
        """It is not used any more."""

    @abc.abstractmethod
    def set(self, parameter: str, value: int) -> int:
        """-ENOENT: there is no such parameter."""

    @abc.abstractmethod
    def packet_in(self, packet: bytes) -> None: ...

    @abc.abstractmethod
    def packet_out(self) -> bytes:
        """The next packet that is sent, empty if there is none."""

    @abc.abstractmethod
    def run(self, now: int) -> None:
        """Move the clock to `now` and run what is due."""

    @abc.abstractmethod
    def next(self) -> int:
        """The time of the next timer, or NEVER."""

    @abc.abstractmethod
    def socket(self) -> int: ...

    @abc.abstractmethod
    def bind(self, fd: int, address: bytes, port: int) -> int:
        """`address`: 16 bytes, IPv4 mapped."""

    @abc.abstractmethod
    def listen(self, fd: int, backlog: int) -> int: ...

    @abc.abstractmethod
    def connect(self, fd: int, address: bytes, port: int) -> int:
        """As on a socket that does not block: -EINPROGRESS, then -EALREADY, 0 or the error."""

    @abc.abstractmethod
    def accept(self, fd: int) -> int: ...

    @abc.abstractmethod
    def write(self, fd: int, length: int, flags: int) -> int:
        """Each byte is its position in the stream, modulo 251."""

    @abc.abstractmethod
    def read(self, fd: int, length: int, flags: int) -> int:
        """-EBADMSG: a byte has another value than its position in the stream, modulo 251."""

    @abc.abstractmethod
    def close(self, fd: int) -> int: ...

    @abc.abstractmethod
    def shutdown(self, fd: int, how: int) -> int: ...

    @abc.abstractmethod
    def setsockopt(self, fd: int, level: int, name: int, value: bytes) -> int: ...

    @abc.abstractmethod
    def getsockopt(self, fd: int, level: int, name: int, room: int) -> int | bytes: ...

    @abc.abstractmethod
    def poll(self, fd: int) -> int:
        """The events that are there."""

    @abc.abstractmethod
    def info(self, fd: int, field: str) -> int | None:
        """A field of struct tcp_info by its name without "tcpi_"; None if there is none."""


def mapped(address: Address) -> bytes:
    """16 bytes; an IPv4 address is mapped."""
    return address.packed if address.version == 6 else b"\0" * 10 + b"\xff\xff" + address.packed


class Bed(Stack):
    """The engine, by ctypes."""

    def __init__(self, library: Path, mtu: int, local: Address, seed: int = 1) -> None:
        self._c = _load(library)
        self._bed = self._c.pkt_bed_new(mtu, local.version, mapped(local), seed)
        if not self._bed:
            raise BadScript(f"the engine refuses an MTU of {mtu} or the address {local}", 1)
        self._room = ctypes.create_string_buffer(_PACKET_ROOM)

    def close_bed(self) -> None:
        if self._bed:
            self._c.pkt_bed_free(self._bed)
        self._bed = None

    def set(self, parameter: str, value: int) -> int:
        return self._c.pkt_bed_set(self._bed, parameter.encode(), value)

    def packet_in(self, packet: bytes) -> None:
        self._c.pkt_bed_in(self._bed, packet, len(packet))

    def packet_out(self) -> bytes:
        length = self._c.pkt_bed_out(self._bed, self._room, _PACKET_ROOM)
        if length < 0:
            raise OSError(-length, f"pkt_bed_out: {os.strerror(-length)}")
        return self._room.raw[:length]

    def run(self, now: int) -> None:
        self._c.pkt_bed_run(self._bed, now)

    def next(self) -> int:
        return self._c.pkt_bed_next(self._bed)

    def socket(self) -> int:
        return self._c.pkt_bed_socket(self._bed)

    def bind(self, fd: int, address: bytes, port: int) -> int:
        return self._c.pkt_bed_bind(self._bed, fd, address, port)

    def listen(self, fd: int, backlog: int) -> int:
        return self._c.pkt_bed_listen(self._bed, fd, backlog)

    def connect(self, fd: int, address: bytes, port: int) -> int:
        return self._c.pkt_bed_connect(self._bed, fd, address, port)

    def accept(self, fd: int) -> int:
        return self._c.pkt_bed_accept(self._bed, fd)

    def write(self, fd: int, length: int, flags: int) -> int:
        return self._c.pkt_bed_write(self._bed, fd, length, flags)

    def read(self, fd: int, length: int, flags: int) -> int:
        return self._c.pkt_bed_read(self._bed, fd, length, flags)

    def close(self, fd: int) -> int:
        return self._c.pkt_bed_close(self._bed, fd)

    def shutdown(self, fd: int, how: int) -> int:
        return self._c.pkt_bed_shutdown(self._bed, fd, how)

    def setsockopt(self, fd: int, level: int, name: int, value: bytes) -> int:
        return self._c.pkt_bed_setsockopt(self._bed, fd, level, name, value, len(value))

    def getsockopt(self, fd: int, level: int, name: int, room: int) -> int | bytes:
        value = ctypes.create_string_buffer(max(room, 1))
        done = self._c.pkt_bed_getsockopt(self._bed, fd, level, name, value, room)
        return done if done < 0 else value.raw[:room]

    def poll(self, fd: int) -> int:
        return self._c.pkt_bed_poll(self._bed, fd)

    def info(self, fd: int, field: str) -> int | None:
        value = ctypes.c_uint64()
        done = self._c.pkt_bed_info(self._bed, fd, field.encode(), ctypes.byref(value))
        if done in (-errno.ENOENT, -errno.EINVAL):
            return None
        if done < 0:
            raise OSError(-done, f"pkt_bed_info: {os.strerror(-done)}")
        return value.value


_BED, _INT, _U32, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_char_p
_U16, _U64, _BYTES = ctypes.c_uint16, ctypes.c_uint64, ctypes.c_char_p
# Result and arguments of every function of tests/pkt/bed.c.
FUNCTIONS = {
    "new": (_BED, (_U32, _INT, _BYTES, _U64)),
    "free": (None, (_BED,)),
    "set": (_INT, (_BED, _TEXT, ctypes.c_int64)),
    "in": (None, (_BED, _BYTES, _U32)),
    "out": (_INT, (_BED, ctypes.c_void_p, _U32)),
    "run": (None, (_BED, _U64)),
    "next": (_U64, (_BED,)),
    "socket": (_INT, (_BED,)),
    "bind": (_INT, (_BED, _INT, _BYTES, _U16)),
    "listen": (_INT, (_BED, _INT, _INT)),
    "connect": (_INT, (_BED, _INT, _BYTES, _U16)),
    "accept": (_INT, (_BED, _INT)),
    "write": (_INT, (_BED, _INT, _U32, _INT)),
    "read": (_INT, (_BED, _INT, _U32, _INT)),
    "close": (_INT, (_BED, _INT)),
    "shutdown": (_INT, (_BED, _INT, _INT)),
    "setsockopt": (_INT, (_BED, _INT, _INT, _INT, _BYTES, _U32)),
    "getsockopt": (_INT, (_BED, _INT, _INT, _INT, ctypes.c_void_p, _U32)),
    "poll": (_INT, (_BED, _INT)),
    "info": (_INT, (_BED, _INT, _TEXT, ctypes.POINTER(_U64))),
}


def _load(library: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(loaded, f"pkt_bed_{name}")
        function.restype, function.argtypes = result, arguments
    return loaded
