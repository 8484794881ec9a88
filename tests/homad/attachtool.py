# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The attach socket's protocol (abi/shm_ctl.h) for tests that speak it themselves, well or badly."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC, VERSION = 0x616D6F48, 1
CAN_PLACES = 16
ATTACH, BIND, POOL, SEGMENT, ROUTE, READY_FD, METRICS, RPCS, SHUTDOWN, LISTEN = range(1, 11)
EXPORT, IMPORT, TAKE = range(16, 19)
CAN_HANDOVER = 64
LISTEN_ON, LISTEN_V4, LISTEN_SHARED = 1, 2, 4
BATCH = 16
METRIC = struct.Struct("<Q48s104s")

_REQUEST = struct.Struct("<IHHQHHI16s32s")
_ANSWER = struct.Struct("<iHHHHI16sQQQIIII224s4I")


def request(
    op: int, size: int = 0, port: int = 0, name: str = "test", magic: int = MAGIC,
    version: int = VERSION, features: int = 0, ip: bytes = bytes(16),
) -> bytes:  # fmt: skip
    return _REQUEST.pack(magic, version, op, size, port, 0, features, ip, name.encode())


@dataclass
class Answer:
    error: int
    version: int
    op: int
    port: int
    sizes: tuple[int, int, int]
    max_rpcs: int
    flags: int  # of an answer about streams; else the most segments
    segment: int
    total: int
    text: str
    ip: bytes


class Client:
    """A connection to the attach socket; its descriptors are closed with it."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.fds: list[int] = []
        self.token = bytes(16)  # of EXPORT's answer

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def send(self, packet: bytes) -> None:
        self.socket.send(packet)

    def answer(self) -> Answer | None:
        """The next answer; None at the end. Its descriptors are appended to `fds`."""
        packet, fds, _, _ = socket.recv_fds(self.socket, 4096, 32)
        self.fds += fds
        if not packet:
            return None
        error, version, op, port, _, _, ip, *rest = _ANSWER.unpack(packet)
        text = rest[7].split(b"\0", 1)[0].decode()
        return Answer(
            error, version, op, port, tuple(rest[:3]), rest[3], rest[4], rest[5], rest[6], text, ip
        )

    def ask(self, op: int, size: int = 0, port: int = 0, features: int = 0) -> Answer:
        self.send(request(op, size, port, features=features))
        answer = self.answer()
        assert answer is not None, "homad hung up"
        return answer

    def attach(self, size: int = 0, features: int = 0) -> Answer:
        answer = self.ask(ATTACH, size, features=features)
        assert answer.error == 0, answer
        return answer

    def records(self, total: int, size: int) -> list[bytes]:
        """What follows an answer to METRICS or RPCS."""
        found: list[bytes] = []
        while len(found) < total:
            packet = self.socket.recv(BATCH * size)
            assert packet and len(packet) % size == 0
            found += [packet[i : i + size] for i in range(0, len(packet), size)]
        return found


def gone(client: Client) -> bool:
    """homad has hung up."""
    try:
        return client.answer() is None
    except ConnectionError:
        return True
