# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How long and how slow a run of `./homa lab run` is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import plan
from lab.cluster.plot import SUFFIXES
from lab.cluster.points import Point, dilation_for, rate_of
from lab.errors import UsageError

DRAIN_S = 20.0  # that messages have to come to their end, at most; more where links are very slow
LIMIT_S = 180.0  # beside warm-up and window, until a run has hung
LONGEST = 1_000_000  # bytes; homa-bench cuts there
WARMUP_MESSAGES = 30  # of the longest, one after the other: how long a run begins unmeasured

_PS_A_BYTE = 8_000_000  # that a byte takes at 1 Mbit/s


@dataclass(frozen=True)
class Setup:
    """A checked command line. `link_bps` is the rate that the links stand for, `dilate` how much
    slower they are (0: as slow as this machine needs), `buffer` bytes of a port, `messages` how many
    a point measures, in at most `longest_s` seconds; `via`: "program" or "service". `real`: the
    addresses of real hosts, "" in a network of this machine."""

    hosts: int
    link_bps: int
    dilate: float
    mtu: int
    buffer: int
    seed: int
    messages: int
    longest_s: float
    via: str
    real: str = ""

    def rate(self, points: list[Point]) -> tuple[int, float]:
        """Bits per second of the lab's links for `points`, and the dilation."""
        return self.diluted(
            self.dilate or dilation_for(points, self.hosts, self.link_bps, self.mtu, cores())
        )

    def diluted(self, slower: float) -> tuple[int, float]:
        """Bits per second of links at least `slower` times slower, and how much slower they are.

        In whole millions, at which a byte takes a whole number of ps, as the simulator needs it.
        """
        most = max(1, int(self.link_bps / max(1.0, slower)) // 10**6)
        rate = next(mbit for mbit in range(most, 0, -1) if _PS_A_BYTE % mbit == 0) * 10**6
        return rate, max(1.0, self.link_bps / rate)

    def window_s(self, point: Point, rate: int) -> float:
        """Seconds in which the hosts together send as many messages as are wanted."""
        wanted = self.messages / (self.hosts * rate_of(point, rate))
        return round(min(self.longest_s, max(1.0, wanted)), 2)


def cores() -> int:
    """Processors that this program may use."""
    return len(os.sched_getaffinity(0))


def warmup_s(rate: int) -> float:
    """Seconds before anything is measured."""
    return round(max(1.0, WARMUP_MESSAGES * LONGEST * 8 / rate), 2)


def check(
    hosts: int,
    link: str,
    dilate: float,
    mtu: int,
    buffer: str,
    seed: int,
    messages: int,
    longest: float,
    via: str,
) -> Setup:
    """The setup, or a UsageError that says which option is wrong and how to mend it."""
    if not 100 <= messages <= 10**7:
        raise UsageError(f"--messages {messages} is out of range; use 100 to 10000000")
    if not 1 <= longest <= 86400:
        raise UsageError(f"--longest {longest:g} is out of range; use 1 to 86400 seconds")
    if not 0 <= seed < 2**53:
        raise UsageError(f"--seed {seed} is out of range; use 0 or more")
    if via not in ("program", "service"):
        raise UsageError(f"unknown --via '{via}'; choose from program, service")
    # The rules of a lab that stays hold for this one.
    made = plan.check("run", hosts, link, dilate or 1, buffer=buffer, mtu=mtu)
    rate = round(made.link_bps * made.dilation)
    return Setup(hosts, rate, dilate, mtu, made.buffer, seed, messages, longest, via)


def check_figure(path: Path | None) -> None:
    """UsageError for a name that says no kind of picture that can be drawn."""
    if path and path.suffix not in SUFFIXES:
        raise UsageError(f"--plot {path} has no known ending; use {', '.join(SUFFIXES)}")
