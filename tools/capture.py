# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa trace --pcap`: homad sends pcapng, which goes into the file block by block."""

from __future__ import annotations

import struct

from lab.errors import LabError
from tools.files import TraceFile

_PACKET, _STATISTICS = 6, 5
_LOST = 5  # option of a statistics block


class Capture:
    """Writes whole blocks only; counts packets. `lost` is what homad had no room for."""

    def __init__(self, out: TraceFile) -> None:
        self._out = out
        self._rest = b""
        self.count = 0
        self.lost = 0

    def feed(self, chunk: bytes) -> None:
        """Bytes as they come from homad."""
        data = self._rest + chunk
        at = 0
        while len(data) - at >= 12:
            kind, length = struct.unpack_from("=II", data, at)
            if length < 12 or length % 4:
                raise LabError("homad sent something that is no capture; is it of another version?")
            if len(data) - at < length:
                break
            self.count += kind == _PACKET
            if kind == _STATISTICS:
                self.lost += _lost(data[at + 20 : at + length - 4])
            at += length
        if at:
            self._out.add(data[:at])
        self._rest = data[at:]

    def finish(self) -> None:
        """Nothing: a capture is complete after each block."""

    def summary(self) -> str:
        """One line about it."""
        return f"{self.count} packets" + (f", {self.lost} more were lost" if self.lost else "")


def _lost(options: bytes) -> int:
    at = 0
    while len(options) - at >= 4:
        code, length = struct.unpack_from("=HH", options, at)
        if code == _LOST and length == 8:
            return int(struct.unpack_from("=Q", options, at + 4)[0])
        at += 4 + (length + 3 & ~3)
    return 0
