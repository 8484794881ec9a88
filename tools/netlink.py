# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Generic netlink family "homa" of the kernel's module: what host/kernel/observe/homa_diag.h describes.

Numbers come in this machine's order. Unknown attributes are of a newer module and left out.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator

from lab.errors import LabError
from tools.connection import Json

SOCKS, RPCS, PEERS, DEVS = range(1, 5)
_NETLINK_GENERIC = 16
_GENL_ID_CTRL, _CTRL_GETFAMILY, _CTRL_FAMILY_ID, _CTRL_FAMILY_NAME = 0x10, 3, 1, 2
_DONE, _ERROR = 3, 2
_REQUEST, _DUMP = 1, 0x300
_TYPE = 0x3FFF  # without the flags of an attribute
_HEAD = struct.Struct("=IHHII")
_GENL = struct.Struct("=BBH")
_ATTR = struct.Struct("=HH")
_VERSION = 1

# In the order of enum homa_diag_attr, from 2 on.
NAMES = (
    "inode uid family port server shutdown encap tx_bytes region_bytes partial_bytes starved "
    "id cookie client phase probes error peer peer_port ifindex age_ns silent_ns "
    "tx_length tx_sent tx_granted rx_length rx_received rx_granted num_rpcs server_rpcs "
    "idle_ms seg_size cutoff_version cutoffs acks_owed ifname mtu rtt_bytes max_incoming "
    "resend_us timeout_us rtt_us sending granting waiting withheld backlog_ns private "
    "rx_gaps rx_gap_bytes avail_bytes messages link"
).split()
_FIRST = 2

# A dump: the command to the messages that answer it.
Dump = Callable[[int], Iterator[bytes]]


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")


def _peer(value: bytes) -> str:
    v6 = ipaddress.IPv6Address(value)
    return str(v6.ipv4_mapped or v6)


def _numbers(value: bytes) -> list[int]:
    return list(struct.unpack(f"={len(value) // 4}I", value))


_OTHERS: dict[str, Callable[[bytes], object]] = {
    "ifname": _text,
    "peer": _peer,
    "cutoffs": _numbers,
}


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and value of each."""
    at = 0
    while len(data) - at >= _ATTR.size:
        length, kind = _ATTR.unpack_from(data, at)
        if not _ATTR.size <= length <= len(data) - at:
            raise LabError("the kernel's answer is cut off; is the module of another version?")
        yield kind & _TYPE, data[at + _ATTR.size : at + length]
        at += length + 3 & ~3


def parse(payload: bytes) -> Json:
    """A message of the family, without its headers, as names and values."""
    found: Json = {}
    for kind, value in attributes(payload):
        name = NAMES[kind - _FIRST] if 0 <= kind - _FIRST < len(NAMES) else ""
        if name in _OTHERS:
            found[name] = _OTHERS[name](value)
        elif name:
            found[name] = int.from_bytes(value, sys.byteorder, signed=name == "error")
    return found


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each netlink message in a datagram."""
    at = 0
    while len(data) - at >= _HEAD.size:
        length, kind, _, _, _ = _HEAD.unpack_from(data, at)
        if not _HEAD.size <= length <= len(data) - at:
            raise LabError("the kernel's answer is cut off")
        yield kind, data[at + _HEAD.size : at + length]
        at += length + 3 & ~3


class Netlink:
    """A socket to the family; a context. LabError if the kernel has none."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC)
        self._socket.settimeout(10)
        self._family = _GENL_ID_CTRL
        name = b"homa\0"
        wanted = (
            _ATTR.pack(_ATTR.size + len(name), _CTRL_FAMILY_NAME) + name + b"\0" * (-len(name) % 4)
        )
        try:
            for body in self._ask(_CTRL_GETFAMILY, wanted, _REQUEST):
                for kind, value in attributes(body):
                    if kind == _CTRL_FAMILY_ID:
                        self._family = struct.unpack("=H", value)[0]
        except OSError as error:
            self._socket.close()
            raise LabError(
                f"the kernel's Homa does not answer by netlink: {error.strerror}"
            ) from None

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def dump(self, command: int) -> Iterator[bytes]:
        """Bodies of the messages that answer a command."""
        try:
            yield from self._ask(command, b"", _REQUEST | _DUMP)
        except OSError as error:
            raise LabError(
                f"the kernel's Homa does not answer: {error.strerror or error}"
            ) from None

    def _ask(self, command: int, payload: bytes, flags: int) -> Iterator[bytes]:
        body = _GENL.pack(command, _VERSION, 0) + payload
        self._socket.send(_HEAD.pack(_HEAD.size + len(body), self._family, flags, 1, 0) + body)
        while True:
            for kind, answer in messages(self._socket.recv(1 << 17)):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    number = -int(struct.unpack_from("=i", answer)[0])
                    if number:
                        raise OSError(number, os.strerror(number))
                    return
                yield answer[_GENL.size :]
                if not flags & _DUMP:
                    return
