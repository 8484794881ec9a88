# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a command line of `./homa lab run` asks for, beside the network (setup.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wanted:
    """The options that say what of an experiment is measured; "" and None: the usual."""

    quick: bool
    workloads: str
    transports: str
    rpc: str
    streams: str
    senders: str
    faults: str
    keep: Path | None
