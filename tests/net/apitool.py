# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The programs that test libhoma, started in namespaces or here, over a given host."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from netns import ROOT, Namespace, Process

BUILD = Path(os.environ.get("HOMA_BUILD") or ROOT / "build").resolve()
PROGRAMS = BUILD / "tests" / "net"
CLIENT = PROGRAMS / "api_client"
PORT = 4000
# A busy machine may stop a process for longer than the default timeout. The guard against
# requests of before a restart would otherwise last as long. Servers have to forget clients that
# ended without an acknowledgement before the test looks for leaks. A client starts a request again
# that the server does not know, because all of it was dropped, for no longer than the latter
# remembers what it has executed: tombstone_ms, so that is long, too.
PATIENT = "timeout_us=20000000,tombstone_ms=25000,restart_guard_us=1"
SERVER = "timeout_us=3000000,tombstone_ms=25000,restart_guard_us=1"
# What api_client can check against an api_server, over any host.
CHECKS = [
    "sizes",
    "async",
    "spinning",
    "blocking",
    "borrow",
    "private",
    "receive_id",
    "abort",
    "abort_waiting",
    "fd",
    "release_order",
    "no_buffers",
    "compute",
    "slow_server",
    "self",
    "poll",
    "fork",
    "idle",
    "reject",
    "within",
    "discard_many",
    "alive",
    "batch",
    "nonblock",
    "given",
]


def environment(**values: str) -> list[str]:
    """A command prefix that sets libhoma's variables and removes inherited ones."""
    inherited = [name for name in os.environ if name.startswith("HOMA_")]
    return ["env", *(word for name in inherited for word in ("-u", name)),
            *(f"{name}={value}" for name, value in values.items())]  # fmt: skip


class Server:
    """An api_server that serves; `address` is where clients find it."""

    def __init__(self, process: Process, host: str) -> None:
        self.process = process
        _, self.via, udp_port = process.line().split()
        self.address = f"[{host}]:{PORT}" if ":" in host else f"{host}:{PORT}"
        if udp_port not in ("0", "54321"):
            self.address += f"/{udp_port}"

    def stop(self) -> dict[str, int]:
        """End it; its counters, those that are 0 left out."""
        status, out, err = self.process.stop(signal.SIGTERM, timeout=60)
        assert status == 0, err
        return {name: int(value) for name, value in (line.split("=") for line in out.splitlines())}


class Bed:
    """Server and client in namespaces `b` and `a`, or without any on loopback.

    Each side's host is a name (`via`, and `server_via` if the server's is another), with
    "service" the attach socket of its homad in `sockets` = (client's, server's). RPCs time out
    after 20 s unless `config` says otherwise, "" for the defaults; a homad has its own settings.
    """

    def __init__(
        self, via: str, family: str, a: Namespace | None = None, b: Namespace | None = None,
        config: str = PATIENT, server_via: str = "", sockets: tuple[Path | str, Path | str] = ("", ""),
    ) -> None:  # fmt: skip
        self.via, self.a, self.b, self.config = via, a, b, config
        self.server_via, self.sockets = server_via or via, sockets
        if a and b:
            self.client_ip = a.v4 if family == "v4" else a.v6
            self.server_ip = b.v4 if family == "v4" else b.v6
        else:
            self.client_ip = self.server_ip = "127.0.0.1" if family == "v4" else "::1"

    def argv(self, ip: str, *words: str, config: str | None = None, via: str = "") -> list[str]:
        """The command `words` with libhoma's variables set for local address `ip`."""
        settings = self.config if config is None else config
        return [
            *environment(HOMA_VIA=via or self.via, HOMA_ADDRESS=ip, HOMA_CONFIG=settings),
            *words,
        ]

    def _side(self, number: int, *words: str, config: str | None = None) -> list[str]:
        via = (self.via, self.server_via)[number]
        if via == "service":
            return [
                *environment(HOMA_VIA=via, HOMA_SERVICE_SOCKET=str(self.sockets[number])),
                *words,
            ]
        return self.argv((self.client_ip, self.server_ip)[number], *words, config=config, via=via)

    def server(self, *words: str, port: int = PORT, program: str = "api_server") -> Server:
        argv = self._side(1, str(PROGRAMS / program), str(port), *words, config=SERVER)
        return Server(self.b.start(argv) if self.b else Process(argv), self.server_ip)

    def start(self, check: str, address: str, *words: str) -> Process:
        argv = self._side(0, str(CLIENT), check, address, *words)
        return self.a.start(argv) if self.a else Process(argv)

    def check_ids(self, address: str) -> None:
        """Client and server know each RPC by the same id, but for the last bit."""
        argv = self._side(0, str(PROGRAMS / "api_ids"), address)
        status, out, err = (self.a.start(argv) if self.a else Process(argv)).wait(90)
        assert status == 0 and out == "ok\n", err or status

    def check(self, check: str, address: str, *words: str, timeout: float = 90) -> None:
        """Run one check of api_client; an AssertionError with its sentence if it fails."""
        status, out, err = self.start(check, address, *words).wait(timeout)
        assert status == 0 and out == "ok\n", f"{check}: {err or status}"


def run_local(
    program: str, *words: str, env: Mapping[str, str] | None = None, timeout: float = 120
) -> None:
    """Run a program that needs no peer; an AssertionError with what it said if it fails."""
    done = subprocess.run(
        [*environment(**(env or {})), str(PROGRAMS / program), *words],
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "ok\n", done.stderr
