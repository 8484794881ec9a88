# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The demo's command line, checked: nothing is started for a request that makes no sense."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab.errors import UsageError
from lab.demo.plot import SUFFIXES
from lab.demo.report import LABELS
from lab.units import parse_rate

BUFFER_FACTORS = (1, 4)
VIAS = ("program", "service", "kernel")
# What links carry by default, and at most in a virtual machine, whose processors are emulated.
LINK = "200mbit"
GUEST_LINK = "100mbit"
GUEST_HOSTS = 8


@dataclass(frozen=True)
class Settings:
    """A checked command line; `link_bps` in bits per second; `via`: of VIAS, who runs Homa."""

    hosts: int
    seconds: float
    workload: str
    load: float
    link_bps: int
    seed: int
    transports: tuple[str, ...]
    homa_config: str = ""
    via: str = "program"


def check(
    hosts: int,
    seconds: float,
    workload: str,
    load: float,
    link: str,
    seed: int,
    transports: str,
    plot: Path | None,
    homa_config: str = "",
    via: str = "program",
) -> Settings:
    """The settings, or a UsageError that says which option is wrong and how to mend it."""
    if not 2 <= hosts <= 16:
        raise UsageError(f"--hosts {hosts} is out of range; use 2 to 16 (3 is usual)")
    if not 0.5 <= seconds <= 600:
        raise UsageError(f"--seconds {seconds:g} is out of range; use 0.5 to 600")
    if not 0 < load < 1:
        raise UsageError(
            f"--load {load:g} is not a share of the link; use a number between 0 and 1, like 0.8"
        )
    if not 0 <= seed < 2**63:
        raise UsageError(f"--seed {seed} is out of range; use 0 or more")
    names = tuple(dict.fromkeys(name.strip() for name in transports.split(",") if name.strip()))
    unknown = [name for name in names if name not in LABELS]
    if unknown or not names:
        raise UsageError(
            f"unknown transport '{(unknown or [''])[0]}'; choose from {', '.join(LABELS)}"
        )
    if plot and plot.suffix not in SUFFIXES:
        raise UsageError(f"--plot {plot} has no known ending; use {', '.join(SUFFIXES)}")
    if via not in VIAS:
        raise UsageError(f"unknown --via '{via}'; choose from {', '.join(VIAS)}")
    link_bps = parse_rate(link or (GUEST_LINK if via == "kernel" else LINK))
    if via == "kernel":
        _check_guest(hosts, link_bps, workload, names)
    return Settings(
        hosts,
        seconds,
        check_workload(workload),
        load,
        link_bps,
        seed,
        names,
        homa_config,
        via,
    )


def _check_guest(hosts: int, link_bps: int, workload: str, names: tuple[str, ...]) -> None:
    """A virtual machine with emulated processors cannot do everything."""
    if hosts > GUEST_HOSTS:
        raise UsageError(f"--hosts {hosts} is too many for --via kernel; use up to {GUEST_HOSTS}")
    if link_bps > parse_rate(GUEST_LINK):
        raise UsageError(f"--link is too fast for --via kernel; use up to {GUEST_LINK}")
    if Path(workload).is_file():
        raise UsageError("--workload: --via kernel takes w1 to w5 and fixed:BYTES, no file")
    if "udp" in names:
        raise UsageError("--transports: there is no udp with --via kernel")


def check_workload(text: str) -> str:
    """The workload as homa-bench takes it: w1 to w5, fixed:BYTES, or the path of a CSV file."""
    lower = text.lower()
    if lower in ("w1", "w2", "w3", "w4", "w5"):
        return lower
    if lower.startswith("fixed:"):
        if not lower[6:].isdigit() or not 1 <= int(lower[6:]) <= 1_000_000:
            raise UsageError(
                f"workload '{text}' is not a size; use fixed:BYTES with 1 to 1000000 bytes"
            )
        return lower
    if Path(text).is_file():
        return str(Path(text).resolve())
    raise UsageError(
        f"unknown workload '{text}'; use w1 to w5, fixed:BYTES, or the path of a CSV file of sizes"
    )
