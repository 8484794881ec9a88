# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A trace's file: complete whenever it is looked at, also after a full disk or a kill.

Pieces are written whole, with the tail that completes the document behind them; the next piece
begins where the tail does. If a piece does not fit, the file is cut back to the last one that did.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from lab.errors import LabError, UsageError

BUFFER = 1 << 18


class TraceFile:
    """`path` "-" is standard output, which cannot be cut back. A context."""

    def __init__(self, path: str, tail: bytes = b"") -> None:
        self.path = path
        self._tail = tail
        self._buffer = bytearray()
        self._size = 0
        self._failed = False
        try:
            self._fd = (
                os.dup(sys.stdout.fileno())
                if path == "-"
                else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            )
        except OSError as error:
            raise UsageError(
                f"cannot write {path}: {error.strerror}; name a file in a folder that is yours"
            ) from None
        try:
            os.lseek(self._fd, 0, os.SEEK_CUR)
            self._seekable = path != "-" and Path(path).is_file()
        except OSError:
            self._seekable = False

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if not self._failed:
                self.flush(last=True)
        finally:
            os.close(self._fd)

    def add(self, piece: bytes) -> None:
        """Append a piece that must not be cut in two."""
        self._buffer += piece
        if len(self._buffer) >= BUFFER:
            self.flush()

    def flush(self, last: bool = False) -> None:
        """Bring everything into the file; LabError if it does not fit."""
        tail = self._tail if self._seekable or last else b""
        try:
            self._write(bytes(self._buffer) + tail)
        except BrokenPipeError:
            self._failed = True
            raise
        except OSError as error:
            self._failed = True
            self._cut_back()
            raise LabError(
                f"{self.path} ends early: {error.strerror}; what was written until then can be read"
            ) from None
        self._size += len(self._buffer)
        self._buffer.clear()

    def _write(self, data: bytes) -> None:
        at = self._size
        while data:
            if self._seekable:
                count = os.pwrite(self._fd, data, at)
            else:
                count = os.write(self._fd, data)
            data = data[count:]
            at += count

    def _cut_back(self) -> None:
        if not self._seekable:
            return
        os.ftruncate(self._fd, self._size)
        # What the tail took up before is free again, so there is room for it.
        self._write_quietly(self._tail)

    def _write_quietly(self, data: bytes) -> None:
        with suppress(OSError):
            self._write(data)
