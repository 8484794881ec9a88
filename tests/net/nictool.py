# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""nic_ping as the tests use it: each run gives the JSON objects that it printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from netns import ROOT, Namespace, Process, eventually, run

BUILD = Path(os.environ.get("HOMA_BUILD") or ROOT / "build").resolve()
PROGRAM = BUILD / "tests" / "net" / "nic_ping"

Event = dict[str, Any]


def events(text: str) -> list[Event]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def pick(all_events: list[Event], name: str) -> list[Event]:
    return [e for e in all_events if e["event"] == name]


class Tool:
    """One backend: how to call nic_ping in a namespace."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def command(self, space: Namespace, *words: str) -> list[str]:
        interface = ["--interface", space.device] if self.backend != "udp" else []
        return [str(PROGRAM), "--backend", self.backend, *interface, *words]

    def run(self, space: Namespace, *words: str) -> list[Event]:
        """Run to the end; events, the status as the last one."""
        done = space.run(self.command(space, *words), check=False)
        return [
            *events(done.stdout),
            {"event": "end", "status": done.returncode, "stderr": done.stderr},
        ]

    def start(self, space: Namespace, *words: str) -> Running:
        """Start a server; returns when it is open."""
        return Running(space.start(self.command(space, *words)))


class Running:
    """A nic_ping that has opened its backend."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.info: Event = json.loads(process.line())
        assert self.info["event"] == "open", process.wait()

    def event(self) -> Event:
        return json.loads(self.process.line())

    def stop(self) -> list[Event]:
        status, out, err = self.process.stop()
        assert status == 0, err
        return events(out)

    def wait(self) -> list[Event]:
        status, out, err = self.process.wait()
        assert status == 0, err
        return events(out)

    def kill(self) -> None:
        self.process.stop(signal.SIGKILL)


def xdp_on(space: Namespace, device: str = "eth0") -> bool:
    """Is an XDP program attached to the device?"""
    link = json.loads(
        run(["ip", "-n", space.name, "-j", "-d", "link", "show", "dev", device]).stdout
    )[0]
    return "xdp" in link


def start_tcp_echo(space: Namespace, port: int = 5000) -> Process:
    """A TCP echo server, ready when this returns."""
    script = (
        "import socket\n"
        f"s = socket.create_server(('', {port}))\n"
        "print('ready', flush=True)\n"
        "c, _ = s.accept()\n"
        "while d := c.recv(65536): c.sendall(d)\n"
    )
    server = space.start(["/usr/bin/python3", "-c", script])
    assert server.line() == "ready"
    return server


def tcp_echo(space: Namespace, address: str, size: int, port: int = 5000) -> bool:
    """Send `size` bytes to the echo server and say whether they came back."""
    script = (
        "import socket, threading\n"
        f"s = socket.create_connection(('{address}', {port}), timeout=10)\n"
        f"data = bytes(i % 251 for i in range({size}))\n"
        "t = threading.Thread(target=s.sendall, args=(data,))\n"
        "t.start()\n"
        "back = b''\n"
        "while len(back) < len(data):\n"
        "    back += s.recv(65536)\n"
        "t.join()\n"
        "raise SystemExit(back != data)\n"
    )
    return space.run(["/usr/bin/python3", "-c", script], check=False).returncode == 0


def icmp_echo(space: Namespace, address: str, size: int = 56) -> bool:
    """The kernel's own traffic: does an echo request of `size` bytes come back?"""
    script = (
        "import os, socket, struct\n"
        f"address, size = {address!r}, {size}\n"
        "v6 = ':' in address\n"
        "s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_RAW, 58 if v6 else 1)\n"
        "s.settimeout(10)\n"
        "body = struct.pack('!BBHHH', 128 if v6 else 8, 0, 0, os.getpid() & 0xffff, 1) + bytes(size)\n"
        "total = sum(struct.unpack(f'!{len(body) // 2}H', body))\n"
        "total = (total & 0xffff) + (total >> 16)\n"
        "total = (total & 0xffff) + (total >> 16)\n"
        "if not v6: body = body[:2] + struct.pack('!H', ~total & 0xffff) + body[4:]\n"
        "s.sendto(body, (address, 0))\n"
        "while True:\n"
        "    reply = s.recv(65536)[0 if v6 else 20:]\n"
        "    if reply[0] == (129 if v6 else 0) and reply[4:] == body[4:]: break\n"
    )
    return space.run(["/usr/bin/python3", "-c", script], check=False).returncode == 0


__all__ = ["PROGRAM", "Running", "Tool", "eventually", "events", "icmp_echo", "pick", "start_tcp_echo", "subprocess", "tcp_echo",
           "xdp_on"]  # fmt: skip
