# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Processor time that homad needs for an application that attaches and ends, and idle memory.

    HOMA_BUILD=build PYTHONPATH=.:tests/homad:tests/net python3 tests/counts/attach_cost.py [HOMAD...]

Each HOMAD named (default: the build's) lives alone in a namespace, serves 1,000 attachments one after
the other, in turn with the others; what counts is the time that its threads ran, as the kernel keeps
it, so other programs on the machine matter little. Needs root.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import homad
from attachtool import Client
from homad import Host, one_host

CYCLES, ROUNDS, IDLE = 1000, 3, 64


def ran_ns(host: Host) -> int:
    """Processor time of all threads of the daemon, ns."""
    tasks = Path(f"/proc/{host.homad.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def cycles(host: Host) -> float:
    """Milliseconds of processor time for one attachment from begin to end."""
    before = ran_ns(host)
    for _ in range(CYCLES):
        with Client(host.homad.socket) as client:
            client.attach()
    host.homad.await_resources(host.homad.resources())
    return (ran_ns(host) - before) / CYCLES / 1e6


def idle_mb(host: Host) -> float:
    """Resident memory that idle applications add, MB."""

    def resident() -> int:
        return host.homad.status("RssAnon") + host.homad.status("RssShmem")

    before = resident()
    clients = [Client(host.homad.socket) for _ in range(IDLE)]
    for client in clients:
        client.attach()
    grown = resident() - before
    for client in clients:
        client.close()
    return grown / 1024


def main(daemons: list[str]) -> None:
    figures: dict[str, list[float]] = {daemon: [] for daemon in daemons}
    memory: dict[str, float] = {}
    for _ in range(ROUNDS):
        for daemon in daemons:
            homad.HOMAD = Path(daemon)
            with one_host(arguments=["--udp-only"]) as host:
                memory[daemon] = idle_mb(host)
                figures[daemon].append(cycles(host))
    for daemon, times in figures.items():
        print(f"{daemon}: {statistics.median(times):.2f} ms ({min(times):.2f} to {max(times):.2f}) for an attachment, "
              f"{memory[daemon]:.0f} MB for {IDLE} idle ones")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:] or [str(homad.HOMAD)])
