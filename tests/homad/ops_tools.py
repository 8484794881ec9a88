# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the tests of homad's monitoring socket share: traffic, and asking without the tools."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homad import PROGRAMS, Homad, Host
from netns import ROOT, Process

RPCS = PROGRAMS / "rpcs"
READY_SECONDS, RPC_SECONDS = 120, 60


@contextmanager
def serving(host: Host, port: int = 4000, how: str = "serve") -> Iterator[Process]:
    """An echo server on `host`, or ("hold") one that never answers."""
    server = host.start([RPCS, how, str(port)])
    assert server.line() == "serving"
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


def ask(
    host: Host, to: Host, count: int, length: int = 100, at_once: int = 8, port: int = 4000
) -> None:
    """RPCs from `host` to the server on `to`; all succeed. Getting into the namespace may take longer
    than all of them, so their time begins with the first one."""
    client = host.start([RPCS, "ask", to.v4, str(port), str(count), str(length), str(at_once)])
    assert client.line(READY_SECONDS) == "asking", host.homad.log()[-3000:]
    assert client.wait(RPC_SECONDS) == (0, f"done {count} failed 0\n", ""), host.homad.log()[-3000:]


def tool(homad: Homad, *argv: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """./homa ss, top or trace, as a user runs it but for the check of packages."""
    done = subprocess.run(
        [sys.executable, "-m", "tools", *argv, "--monitor", str(homad.monitor)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == status, (
        f"{argv}: status {done.returncode}: {done.stdout[-500:]}{done.stderr}"
    )
    return done


class Raw:
    """The monitoring socket without any politeness. A context."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self._lines = self.socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()
        self.socket.close()

    def send(self, data: object) -> None:
        self.socket.sendall(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")

    def line(self) -> dict:
        text = self._lines.readline()
        return json.loads(text) if text else {}

    def read(self) -> bytes:
        """Everything to the end."""
        return self._lines.read()

    def ask(self, data: object) -> dict:
        self.send(data)
        return self.line()


def snapshot(homad: Homad) -> dict:
    with Raw(homad.monitor) as raw:
        return raw.ask({"op": "snapshot"})


def scrape(
    path: Path, url: str = "/metrics", method: str = "GET"
) -> tuple[int, str, http.client.HTTPMessage]:
    """One HTTP request over a UNIX socket: status, text, headers."""
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(30)
    connection.sock.connect(str(path))
    connection.request(method, url)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer.headers
