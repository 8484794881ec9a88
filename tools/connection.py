# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The monitoring socket: a line of JSON out, lines of JSON back, or the bytes of a trace."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from typing import Any, Protocol

from lab.errors import LabError

DEFAULT = "/run/homa/monitor.sock"
TIMEOUT = 30.0
CHUNK = 1 << 18
_ABSENT = (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR)

Json = dict[str, Any]


class Source(Protocol):
    """Who is asked: a homad, or the kernel's module (tools.kernel)."""

    def ask(self, op: str) -> Json:
        """A request with one answer."""

    def each(self, op: str, **more: object) -> Iterator[Json]:
        """A request with an answer for each thing; `more`: what else the request says."""


class Absent(LabError):
    """No homad runs there."""


class Refused(LabError):
    """homad answered that it does not do that."""


class Gone(LabError):
    """homad ended or closed the connection while it was being watched."""


def default_path() -> str:
    """Where homad is asked unless --monitor says otherwise."""
    return os.environ.get("HOMA_MONITOR") or DEFAULT


class Connection:
    """A connection to homad; a context. LabError says in one sentence why there is none."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rest = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(TIMEOUT)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            absent = error.errno in _ABSENT
            raise (Absent if absent else LabError)(_why(path, error)) from None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, request: Json) -> None:
        """Send a request."""
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            pass  # it may have left an answer that says why
        except OSError as error:
            raise self._gone(error) from None

    def line(self) -> Json:
        """The next line of an answer; LabError with homad's own words if it is a refusal."""
        while b"\n" not in self._rest:
            chunk = self._receive(TIMEOUT)
            if chunk is None:
                raise Gone(f"homad does not answer on {self._path}; is it stopped?")
            if not chunk:
                raise Gone(f"homad went away (its socket was {self._path})")
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        answer: Json = json.loads(line)
        if "error" in answer and len(answer) == 1:
            raise Refused(f"homad says: {answer['error']}")
        return answer

    def ask(self, op: str) -> Json:
        """A request with one line of answer."""
        self.send({"op": op})
        return self.line()

    def each(self, op: str, **more: object) -> Iterator[Json]:
        """A request with a line for each thing; `more`: what else the request says."""
        self.send({"op": op, **more})
        while True:
            answer = self.line()
            if answer.get("end"):
                return
            yield answer

    def chunk(self, timeout: float) -> bytes | None:
        """Bytes of a trace: None if there were none in time, empty at the end."""
        if self._rest:
            chunk, self._rest = self._rest, b""
            return chunk
        return self._receive(timeout)

    def _receive(self, timeout: float) -> bytes | None:
        self._socket.settimeout(max(timeout, 0.001))
        try:
            return self._socket.recv(CHUNK)
        except TimeoutError:
            return None
        except ConnectionResetError:
            return b""
        except OSError as error:
            raise self._gone(error) from None

    def _gone(self, error: OSError) -> Gone:
        return Gone(f"homad went away: {error.strerror} (its socket was {self._path})")


def _why(path: str, error: OSError) -> str:
    if error.errno in _ABSENT:
        return f"no homad answers at {path}; start one (homad), or name its socket with --monitor"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{path} is not for you; run this as root, or join homad's monitor_group"
    why = error.strerror or error
    return f"cannot connect to {path}: {why}; name homad's socket with --monitor"
