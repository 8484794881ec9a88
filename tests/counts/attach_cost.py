# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Processor time that homad needs for an application that attaches and ends, and idle memory.

    HOMA_BUILD=build PYTHONPATH=.:tests/homad:tests/net python3 tests/counts/attach_cost.py [HOMAD...]
        [--cycles N] [--rounds N] [--json FILE]

Each HOMAD named (default: the build's) lives alone in a namespace, serves 1,000 attachments one after
the other, in turn with the others; what counts is the time that its threads ran, as the kernel keeps
it, so other programs on the machine matter little. The file has the figures of the first one. Needs
root.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import homad
from attachtool import Client
from homad import Host, one_host

CYCLES, ROUNDS, IDLE = 1000, 3, 64


def ran_ns(host: Host) -> int:
    """Processor time of all threads of the daemon, ns."""
    tasks = Path(f"/proc/{host.homad.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def cycles(host: Host, times: int) -> float:
    """Milliseconds of processor time for one attachment from begin to end."""
    before = ran_ns(host)
    for _ in range(times):
        with Client(host.homad.socket) as client:
            client.attach()
    host.homad.await_resources(host.homad.resources())
    return (ran_ns(host) - before) / times / 1e6


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


def measure(daemons: list[str], times: int, rounds: int) -> dict[str, dict[str, object]]:
    """For each daemon the milliseconds of each round, and the memory of idle applications."""
    found: dict[str, dict[str, object]] = {}
    for _ in range(rounds):
        for daemon in daemons:
            homad.HOMAD = Path(daemon)
            with one_host(arguments=["--udp-only"]) as host:
                figures = found.setdefault(daemon, {"attach_ms": []})
                figures["idle_mb"] = idle_mb(host)
                figures["attach_ms"].append(cycles(host, times))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("homad", nargs="*", default=[str(homad.HOMAD)], help="a daemon to measure")
    parser.add_argument("--cycles", type=int, default=CYCLES, help="attachments in a round")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of each daemon")
    parser.add_argument("--json", type=Path, help="write the figures of the first one there")
    options = parser.parse_args()
    found = measure(options.homad, options.cycles, options.rounds)
    for daemon, figures in found.items():
        times = figures["attach_ms"]
        print(f"{daemon}: {statistics.median(times):.2f} ms ({min(times):.2f} to {max(times):.2f}) for an attachment, "
              f"{figures['idle_mb']:.0f} MB for {IDLE} idle ones")  # fmt: skip
    if options.json:
        first = {"attachments": options.cycles, "idle": IDLE, **found[options.homad[0]]}
        options.json.write_text(json.dumps(first, indent=2) + "\n")


if __name__ == "__main__":
    main()
