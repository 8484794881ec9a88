# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Hosts with a message NIC: a namespace with a cable, and a homa-card between it and a TAP."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from lab.hw import card
from lab.paths import ROOT
from tests.net.netns import Namespace, Net, Process, run

PORT = 4000
# A Verilated card is slow and the machine may be busy.
PATIENT = "timeout_us=20000000,tombstone_ms=25000,restart_guard_us=1"


class Card:
    """A homa-card in a namespace whose cable is `device`; its host's address is `v4`."""

    def __init__(self, space: Namespace, number: int, *options: str) -> None:
        self.space = space
        self.v4 = space.v4 = f"10.9.0.{number}"
        self.tap = "homa0"
        cable = space.device
        # The kernel must not answer at the cable, nor speak there by itself.
        space.ip("address", "flush", "dev", cable)
        space.ip("link", "set", cable, "arp", "off")
        space.run(["sysctl", "-qw", f"net.ipv6.conf.{cable}.disable_ipv6=1"])
        self.argv = [str(card.build()), "--tap", self.tap, "--link", cable]
        self.argv += ["--mac", f"02:00:00:00:00:0{number}", *options]
        self.process = self.start()

    def start(self) -> Process:
        process = self.space.start(self.argv)
        assert process.line(60) == "ready"
        self.space.ip("address", "replace", f"{self.v4}/24", "dev", self.tap)
        return process

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def again(self) -> None:
        """Another device in place of one that was killed."""
        self.process = self.start()

    def counters(self) -> dict[str, int]:
        self.process.send_signal(signal.SIGUSR1)
        return _counters(self.process.line())

    def stop(self) -> dict[str, int]:
        status, out, err = self.process.stop()
        assert status == 0, err
        return _counters(out.splitlines()[-1])

    def env(self, **more: str) -> list[str]:
        values = {"HOMA_VIA": "message", "HOMA_INTERFACE": self.tap, "HOMA_CONFIG": PATIENT}
        return ["env", *(f"{name}={value}" for name, value in {**values, **more}.items())]


def _counters(line: str) -> dict[str, int]:
    return {name: int(value) for name, value in (word.split("=") for word in line.split())}


def text(size: int) -> str:
    """Bytes that are not the same everywhere, so that what is in a wrong place is seen."""
    return "".join(f"{at:07d}," for at in range(0, size, 8))[:size]


def program(name: str) -> str:
    return str(Path(os.environ.get("HOMA_BUILD") or ROOT / "build").resolve() / name)


def serve(space: Namespace, environment: list[str]) -> Process:
    server = space.start([*environment, program("examples/echo-server"), str(PORT)])
    assert "serving" in server.line(60)
    return server


def echo(space: Namespace, environment: list[str], to: str, size: int) -> str:
    """What is wrong with an echo of `size` bytes; "" if each byte came back."""
    sent = text(size)
    done = space.run(
        [*environment, program("examples/echo-client"), f"{to}:{PORT}", sent], False, 120
    )
    if done.returncode:
        return done.stderr or f"status {done.returncode}"
    return "" if done.stdout == f"{sent}\n" else f"other bytes: {done.stdout[:100]}"


def cabled(net: Net) -> tuple[Namespace, Namespace]:
    """Two namespaces on a cable, without checksums that are left to hardware."""
    a, b = net.pair()
    for space in (a, b):
        run(space.command(["ethtool", "-K", space.device, "tx", "off", "gro", "off"]), check=False)
    return a, b
