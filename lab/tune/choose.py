# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What was measured becomes settings, each with its reason. No input, no output: only arithmetic.

A number that was not measured well enough gives no setting but a sentence that says why; homad
then derives the value by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

LEAST_SAMPLES = 1000  # below that nothing is told about times
# The ranges in which homad (homa_derive.c) keeps RTTbytes if it derives it, in bytes.
RTT_BYTES = (10_000, 1_000_000)
MBPS = (1, 10_000_000)
USAGE = (80, 99)  # percent; if TCP reaches less, the processors are the limit, not the link
SPIN_US = (5, 1000)
ENOUGH = 0.98  # of the best throughput: fewer messages at a time are as good


@dataclass(frozen=True)
class Times:
    """Round trips of short RPCs, one at a time: how many, the shortest and the mean, in µs."""

    count: int
    least_us: float
    mean_us: float
    command: str


@dataclass(frozen=True)
class Rate:
    """Bits per second on the wire, preambles and gaps included."""

    bps: float
    command: str


@dataclass(frozen=True)
class Measured:
    """All about a network. `link_bps`: what the link is said to carry, 0 if nobody says it, and
    `link_from`, who says it. `goodput`: by max_overcommit, empty if there was one peer only."""

    device: str
    mtu: int
    link_bps: int
    link_from: str
    polled: Times
    asleep: Times
    tcp: Rate
    goodput: dict[int, Rate] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """A setting of homad, "section.name", and why it has its value. `value` None: it is not set."""

    name: str
    value: int | list[str] | None
    reason: str
    command: str = ""


def between(low: float, value: float, high: float) -> int:
    """`value` as a whole number within `low` and `high`."""
    return int(min(max(value, low), high))


def choose(found: Measured) -> list[Setting]:
    """All settings, those without a value included."""
    said = bool(found.link_bps)
    link = found.link_bps or found.tcp.bps
    rate = Setting(
        "network.link_mbps",
        between(MBPS[0], link / 1e6, MBPS[1]),
        f"{found.link_from} says {found.link_bps / 1e6:,.0f} Mbit/s."
        if said
        else f"Nobody says the rate of the link; TCP filled it with {link / 1e6:,.1f} Mbit/s.",
        "" if said else found.tcp.command,
    )
    rtt_bytes = _rtt_bytes(found, link)
    return [
        Setting("network.interfaces", [found.device], "The interface that was measured."),
        rate,
        rtt_bytes,
        *_overcommitment(found, rtt_bytes.value),
        _margin(found),
        _poll_time(found),
    ]


def _few(times: Times) -> str:
    """Why `times` say nothing, or ""."""
    if times.count >= LEAST_SAMPLES:
        return ""
    return f"Not set: {times.count:,} round trips were measured, {LEAST_SAMPLES:,} are needed."


def _rtt_bytes(found: Measured, link_bps: float) -> Setting:
    name, times = "protocol.unsched_bytes", found.polled
    if why := _few(times):
        return Setting(name, None, why, times.command)
    exact = times.least_us * link_bps / 8e6 + 3 * found.mtu
    value = between(RTT_BYTES[0], exact, RTT_BYTES[1])
    limit = "" if value == int(exact) else f" Kept within {RTT_BYTES[0]:,} and {RTT_BYTES[1]:,}."
    return Setting(
        name,
        value,
        f"RTTbytes: in the shortest round trip, {times.least_us:.1f} µs (n = {times.count:,}), the "
        f"link carries {times.least_us * link_bps / 8e6:,.0f} bytes; three packets of"
        f" {found.mtu:,} bytes are at the two hosts and in the switch.{limit}",
        times.command,
    )


def _overcommitment(found: Measured, rtt_bytes: object) -> list[Setting]:
    name = "protocol.max_overcommit"
    if len(found.goodput) < 2:
        return [Setting(name, None, "Not set: it shows only with two peers or more.")]
    best = max(rate.bps for rate in found.goodput.values())
    if best <= 0:
        return [Setting(name, None, "Not set: no message came.")]
    least = min(count for count, rate in found.goodput.items() if rate.bps >= ENOUGH * best)
    rates = ", ".join(
        f"{count}: {rate.bps / 1e6:,.1f}" for count, rate in sorted(found.goodput.items())
    )
    chosen = [
        Setting(
            name,
            least,
            f"Overcommitment: the smallest number with {ENOUGH:.0%} of the greatest throughput when"
            f" all others send to one host (Mbit/s received by number: {rates}). A greater one fills"
            " the switch's buffer. It is never 1, since a sender may be busy with others.",
            found.goodput[least].command,
        )
    ]
    if isinstance(rtt_bytes, int):
        chosen.append(
            Setting(
                "protocol.max_incoming",
                least * rtt_bytes,
                f"{least} messages granted at a time, each {rtt_bytes:,} bytes of a round trip.",
            )
        )
    return chosen


def _margin(found: Measured) -> Setting:
    name = "protocol.max_link_usage"
    if not found.link_bps:
        return Setting(name, None, "Not set: it is part of a rate that nobody says.")
    part = 100 * found.tcp.bps / found.link_bps
    if part < USAGE[0]:
        return Setting(
            name,
            None,
            f"Not set: TCP got {part:.1f} % of the link's rate. So little is the work of processors"
            " or of other traffic; a link's own margin is a few percent.",
            found.tcp.command,
        )
    return Setting(
        name,
        between(USAGE[0], math.floor(part), USAGE[1]),
        f"Pacing margin: TCP got {part:.1f} % of the link's rate through"
        f" ({found.tcp.bps / 1e6:,.1f} Mbit/s with all headers). homad sends no faster, at most"
        f" {USAGE[1]} %.",
        found.tcp.command,
    )


def _poll_time(found: Measured) -> Setting:
    name = "threads.spin_us"
    if why := _few(found.polled) or _few(found.asleep):
        return Setting(name, None, why, found.asleep.command)
    cost = found.asleep.mean_us - found.polled.mean_us
    return Setting(
        name,
        between(SPIN_US[0], math.ceil(cost), SPIN_US[1]),
        f"Poll time: an RPC takes {found.asleep.mean_us:.1f} µs (mean, n = {found.asleep.count:,})"
        f" if its program sleeps and {found.polled.mean_us:.1f} µs (n = {found.polled.count:,})"
        f" if it polls, so a wake-up costs {cost:.1f} µs. Who polls so long before sleeping never"
        f" uses more than twice the best. Kept within {SPIN_US[0]} and {SPIN_US[1]:,}.",
        found.asleep.command,
    )
