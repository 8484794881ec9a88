# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a figure was measured on; without it no figure can be compared."""

from __future__ import annotations

import datetime
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """The machine and the moment: `memory_mb` in MiB, `load` the 1-minute average at the start."""

    cpu: str
    cores: int
    kernel: str
    memory_mb: int
    virtual: bool
    load: float
    date: str

    def as_json(self) -> dict[str, object]:
        """For a result file."""
        return asdict(self)

    def one_line(self) -> str:
        """For a headline."""
        kind = "virtual machine" if self.virtual else "machine"
        return (
            f"{self.cpu}, {self.cores} cores, Linux {self.kernel}, {kind}, "
            f"load {self.load:.1f}, {self.date}"
        )

    def warning(self) -> str:
        """A line if other programs keep the machine so busy that figures suffer, else ""."""
        if self.load < self.cores / 2:
            return ""
        return (
            f"The machine is busy (load {self.load:.1f} on {self.cores} cores): "
            "figures will be worse and less stable."
        )


def describe() -> Machine:
    """This machine, now."""
    cpu, virtual = platform.machine(), False
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and cpu == platform.machine():
            cpu = " ".join(value.split())
        if key.strip() == "flags":
            virtual = "hypervisor" in value.split()
    memory = next(
        (row for row in _read("/proc/meminfo").splitlines() if row.startswith("MemTotal")), "x 0"
    )
    return Machine(
        cpu=cpu,
        cores=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        memory_mb=int(memory.split()[1]) // 1024,
        virtual=virtual,
        load=os.getloadavg()[0],
        date=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
