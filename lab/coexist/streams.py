# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Streams of kernel TCP between all hosts, as long as a run, each with its part of a load.

A host sends streams to the hosts that follow it, and so receives as many: each direction of each
link has the load. The kernel lets a stream send no more than its part (SO_MAX_PACING_RATE), so a
stream that has lost time does not make up for it: what it loses, it has lost. Receivers count bytes,
in the window in which round trips are measured.

Where homad carries the streams its rule holds all of a host's together to their part of the load; the
same programs run under homa-run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.errors import LabError
from lab.net.homad import unmodified, unmodified_env
from lab.net.hosts import Host
from lab.net.runner import Job
from lab.paths import homa_flows

PORT = 5001
TO = 3  # hosts that a host sends streams to, if there are so many others
SCHEMA = "homa-flows/1"
TIMEOUT_S = 60.0
# homad's limits count headers, of segments of 1448 bytes.
COUNTED = 1514 / 1448


@dataclass(frozen=True)
class Carried:
    """What all streams carried: data in bits per second, how unevenly (Jain's index, 1: evenly),
    how many connections failed, and the seconds by which the last window opened late."""

    bps: float
    fairness: float
    failed: int
    late_s: float


def rules(load: float, rate_bps: float) -> str:
    """Settings of a homad that carries the streams of its host."""
    return (
        f'[[tcp_rule]]\nlisten = [{PORT}, {PORT}]\nlimits = "rule"\ncongestion = "cubic"\n'
        f'send = "{load * rate_bps * COUNTED / 1e3:.0f} kbit/s"\n'
        f"[[tcp_rule]]\nconnect = [{PORT}, {PORT}]\n"
    )


def jobs(
    hosts: Sequence[Host], load: float, rate_bps: float, opens: float, seconds: float,
    homad: Callable[[str], dict[str, str]] | None = None,
) -> list[Job]:  # fmt: skip
    """Streams that ask for `load` of links of `rate_bps`; their bytes are counted for `seconds`
    from `opens` on (CLOCK_MONOTONIC). Senders first. `homad` says, by a host's address, how to
    find the daemon that carries them."""
    program = [str(homa_flows())]
    env: dict[str, dict[str, str]] = {host.address: {} for host in hosts}
    if homad:
        program = unmodified(program)
        env = {a: unmodified_env(homad(a)) for a in env}
    others = min(TO, len(hosts) - 1)
    pace = f"{load * rate_bps / others:.0f}"
    found = []
    for number, host in enumerate(hosts, 1):
        argv = [*program, "server", host.address, str(PORT), "--mode", "receive"]
        argv += ["--size", "65536", *([] if homad else ["--pace", pace])]
        name = f"streams from host {number}"
        found.append(Job(name, argv, host, background=True, env=env[host.address]))
    for number, host in enumerate(hosts, 1):
        for step in range(1, others + 1):
            sender = hosts[(number - 1 - step) % len(hosts)]
            argv = [*program, "client", sender.address, str(PORT), "--mode", "receive"]
            argv += ["--warmup", "0", "--measure-at", f"{opens:.6f}", "--duration", str(seconds)]
            argv += ["--timeout", str(TIMEOUT_S), "--json", "{json}"]
            name = f"a stream to host {number}"
            found.append(Job(name, argv, host, env=env[host.address]))
    return found


def carried(found: Sequence[dict | None], opens: float) -> Carried:
    """What the receivers of jobs() say; senders say nothing."""
    rows = [data for data in found if data is not None]
    try:
        if not rows or any(row["schema"] != SCHEMA for row in rows):
            raise KeyError("schema")
        each = [float(row["bits_per_s"]) for row in rows]
        failed = sum(int(row["failed"]) for row in rows)
        late = max(float(row["opened_at_s"]) for row in rows) - opens
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(
            f"homa-flows' result lacks or damages {error}; rebuild with ./homa build"
        ) from None
    return Carried(sum(each), fairness(each), failed, max(0.0, late))


def fairness(values: Sequence[float]) -> float:
    """Jain's index: 1 if all are alike, 1 / n if one has everything."""
    squares = len(values) * sum(value * value for value in values)
    return sum(values) ** 2 / squares if squares else 1.0
