# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a laboratory shall be, checked: nothing is made for a request that makes no sense.

A network can be time-dilated: its links are slower than those that it stands for, by a factor, so
that the processors of one machine are not the limit. Everything then takes so much longer, and
the buffer is that of the fast network: bytes are bytes.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

from lab.errors import UsageError
from lab.net.switch import LEVELS, Traits, buffer_bytes
from lab.units import format_rate, parse_rate

MAX_HOSTS = 40
_NAME = re.compile(r"^[a-z0-9]{1,16}$")
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([km]?)b?$", re.IGNORECASE)
_SIZE_SCALE = {"": 1, "k": 10**3, "m": 10**6}
_MAX_BUFFER = 64 * 10**6


@dataclass(frozen=True)
class Plan:
    """A checked request: `link_bps` is the rate that ports have, in bits per second, `dilation` how
    many times slower that is than the network it stands for; `buffer` bytes for each port."""

    name: str
    hosts: int
    link_bps: int
    dilation: float
    buffer: int
    traits: Traits

    def as_json(self) -> dict[str, object]:
        """For a file; from_json() reads it."""
        return asdict(self)

    def words(self) -> str:
        """One line for people."""
        link = format_rate(self.link_bps)
        if self.dilation != 1:
            link += (
                f" ({format_rate(self.link_bps * self.dilation)}, {self.dilation:g} times slower)"
            )
        traits = self.traits
        more = f", {traits.loss_ppm / 1e4:g} % loss" if traits.loss_ppm else ""
        more += f", ECN from {traits.ecn_bytes:,} bytes" if traits.ecn_bytes else ""
        plural = "priorities" if traits.levels > 1 else "priority"
        return (
            f"{self.hosts} hosts, {link}, {traits.levels} {plural}, "
            f"{self.buffer:,} bytes of buffer per port, MTU {traits.mtu}{more}"
        )


def from_json(document: dict) -> Plan:
    """The plan in a file written by as_json()."""
    return Plan(**{**document, "traits": Traits(**document["traits"])})


def check_name(name: str) -> str:
    """`name`, or a UsageError if it cannot be part of a namespace's name."""
    if not _NAME.match(name):
        raise UsageError(f"'{name}' is no name for a lab; use 1 to 16 small letters and digits")
    return name


def parse_size(text: str, option: str) -> int:
    """Bytes in `text`, as in "48kb" (48,000) or "3000"."""
    match = _SIZE.match(text.strip())
    if not match:
        raise UsageError(f"{option} {text} is no size; write it like 3000, 48kb or 1mb")
    return int(float(match[1]) * _SIZE_SCALE[match[2].lower()])


def check(
    name: str,
    hosts: int = 3,
    link: str = "200mbit",
    dilate: float = 1.0,
    priorities: int = LEVELS,
    buffer: str = "",
    mtu: int = 1500,
    loss: float = 0.0,
    ecn: str = "",
) -> Plan:
    """The plan, or a UsageError that says which option is wrong and how to mend it."""
    check_name(name)
    if not 2 <= hosts <= MAX_HOSTS:
        raise UsageError(f"--hosts {hosts} is out of range; use 2 to {MAX_HOSTS}")
    if not 1 <= dilate <= 100_000:
        raise UsageError(f"--dilate {dilate:g} is out of range; use 1 to 100000 (250 is usual)")
    rate = int(parse_rate(link) / dilate)
    if rate < 10**6:
        raise UsageError(f"--link {link} is below 1 Mbit/s when it is {dilate:g} times slower")
    if not 1 <= priorities <= LEVELS:
        raise UsageError(f"--priorities {priorities} is out of range; use 1 to {LEVELS}")
    if not 576 <= mtu <= 9000:
        raise UsageError(f"--mtu {mtu} is out of range; use 576 to 9000")
    if not 0 <= loss < 100:
        raise UsageError(f"--loss {loss:g} is not a percentage; use 0 up to, not including, 100")
    size = parse_size(buffer, "--buffer") if buffer else buffer_bytes(rate)
    if not mtu + 14 <= size <= _MAX_BUFFER:
        raise UsageError(f"--buffer {size} is out of range; use one packet to {_MAX_BUFFER} bytes")
    mark = parse_size(ecn, "--ecn") if ecn else 0
    if mark > size:
        raise UsageError(f"--ecn {mark} is more than a port holds ({size} bytes)")
    traits = Traits(priorities, round(loss * 1e4), mark, mtu)
    return Plan(name, hosts, rate, dilate, size, traits)
