# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A host of a laboratory that has a message NIC: a homa-card between its cable and a TAP."""

from __future__ import annotations

import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.net.hosts import Host, run

TAP = "homa0"
SECONDS = 60


@dataclass
class CardHost:
    """`process`: its homa-card, whose standard output has `ready` and lines of counters."""

    host: Host
    process: subprocess.Popen[str]

    def command(self, argv: list[str], **variables: str) -> list[str]:
        """`argv` as it runs on this host, over the card."""
        values = {"HOMA_VIA": "message", "HOMA_INTERFACE": TAP, **variables}
        return self.host.command(["env", *(f"{k}={v}" for k, v in values.items()), *argv])

    def counters(self) -> dict[str, int]:
        self.process.send_signal(signal.SIGUSR1)
        return {k: int(v) for k, v in (w.split("=") for w in self._line().split())}

    def _line(self) -> str:
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], SECONDS)[0]:
            raise LabError(f"homa-card says nothing for {SECONDS} s")
        line = self.process.stdout.readline()
        if not line:
            raise LabError(f"homa-card has ended with status {self.process.wait()}")
        return line.strip()


@contextmanager
def card_host(program: Path, host: Host, *options: str) -> Iterator[CardHost]:
    """Give `host`, which has a cable `device` with its address, a card that has this address."""
    number = host.address.rsplit(".", 1)[1]
    # The kernel must not answer at the cable, nor speak there by itself.
    run(["ip", "-n", host.namespace, "address", "flush", "dev", host.device])
    run(["ip", "-n", host.namespace, "link", "set", host.device, "arp", "off"])
    run(host.command(["sysctl", "-qw", f"net.ipv6.conf.{host.device}.disable_ipv6=1"]))
    argv = [str(program), "--tap", TAP, "--link", host.device]
    argv += ["--mac", f"02:00:00:00:00:{int(number):02x}", *options]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            host.command(argv), stdout=subprocess.PIPE, stderr=errors, text=True
        )
        it = CardHost(host, process)
        try:
            if it._line() != "ready":
                raise LabError("homa-card does not say that it is ready")
            words = ["address", "add", f"{host.address}/24", "dev", TAP]
            run(["ip", "-n", host.namespace, *words])
            yield it
        except LabError as error:
            errors.seek(0)
            raise LabError(f"{error}\n{errors.read()}".strip()) from None
        finally:
            # Its end also ends the waveform's file.
            process.terminate()
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
