# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a command line of `./homa lab run` asks for, beside the network (setup.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# A network unless the command line says it: ATC'21's links, packets and buffer of a port.
LINK, MTU, BUFFER = "25gbit", 3000, "325kb"
MESSAGES, LONGEST_S = 12_000, 300.0  # how many a run measures, in at most so many seconds
VIA = "program"  # who runs Homa


@dataclass(frozen=True)
class Wanted:
    """The options that say what of an experiment is measured; "" and None: the usual."""

    quick: bool
    workloads: str = ""
    transports: str = ""
    rpc: str = ""
    streams: str = ""
    senders: str = ""
    faults: str = ""
    keep: Path | None = None
    inventory: Path | None = None
