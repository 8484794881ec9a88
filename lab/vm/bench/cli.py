# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench kernel icount|profile|rtt|...`: what is asked for, and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError, UsageError
from lab.vm import NAMES, Kernel, VmError, prepare
from lab.vm.bench import hosts

PARTS = ("icount", "profile", "rtt", "rate", "bulk", "w4", "streams", "cores", "tcp-instructions")
# The oldest has no hook that gives programs streams.
_STREAMS_KERNEL = "6.12"


@dataclass(frozen=True)
class Wish:
    """What the command line asks for.

    `module`: a homa.ko instead of the one built from this tree. `no_module`: only the rivals.
    `cases`: for profile, which cases are shown. `top`: how many functions.
    `cpus` and `count` are of cores: numbers of CPUs, and RPCs of each client (0: as usual).
    """

    part: str
    kernel: str = ""
    rounds: int = 5
    seconds: float = 1.0
    offloads: str = ""
    cases: str = ""
    top: int = 30
    module: Path | None = None
    no_module: bool = False
    cpus: str = ""
    count: int = 0


def rounds_of(part: str) -> int:
    """How many rounds a part has unless somebody says another number: one of streams or w4 takes as long
    as five of others, and those of counted instructions differ little."""
    return {"streams": 1, "w4": 1, "tcp-instructions": 3}.get(part, 5)


def check(wish: Wish) -> None:
    """Refuse what cannot be meant."""
    if wish.part not in PARTS:
        raise UsageError(f"./homa bench kernel {wish.part or '...'}: use {', '.join(PARTS)}")
    if wish.part == "streams" and (wish.no_module or wish.kernel == "6.1"):
        raise UsageError("streams: needs the module, and Linux 6.12 or newer")
    if wish.part == "tcp-instructions" and (wish.module or wish.offloads):
        raise UsageError("tcp-instructions: is without the module, and leaves offloads as they are")
    _check_cores(wish)
    if wish.kernel and wish.kernel not in NAMES:
        raise UsageError(f"--kernel {wish.kernel}: known are {', '.join(NAMES)}")
    if wish.offloads and wish.offloads not in hosts.OFFLOADS:
        raise UsageError(f"--offloads {wish.offloads}: known are {', '.join(hosts.OFFLOADS)}")
    if wish.rounds < 1 or wish.seconds <= 0 or wish.top < 1:
        raise UsageError("--rounds, --seconds and --top must be positive")


def _check_cores(wish: Wish) -> None:
    from lab.vm.bench import report_cores

    if wish.part != "cores":
        if wish.cpus or wish.count:
            raise UsageError("--cpus and --count are of cores")
        return
    report_cores.cpus_of(wish.cpus or "1")
    if wish.no_module or wish.offloads:
        raise UsageError("cores: needs the module, and leaves offloads as they are")
    if wish.count < 0:
        raise UsageError("--count must be positive")


def main(wish: Wish) -> dict[str, object]:
    """Measure, print, and give the document for --json."""
    from lab.vm.bench import report_cores, report_counts, report_streams, report_tcp, report_times

    shows: dict[str, Callable[[Wish, Kernel, Path | None], dict[str, object]]] = {
        "icount": report_counts.icount,
        "profile": report_counts.profile,
        "rtt": report_times.show,
        "rate": report_times.show,
        "bulk": report_times.show,
        "w4": report_times.show_w4,
        "streams": report_streams.show,
        "cores": report_cores.show,
        "tcp-instructions": report_tcp.show,
    }
    try:
        oldest = _STREAMS_KERNEL if wish.part == "streams" else "6.1"
        kernel = prepare(wish.kernel or oldest)
        without = wish.no_module or wish.part == "tcp-instructions"
        module = None if without else hosts.module_for(kernel, wish.module)
        return {
            "what": wish.part,
            "kernel": kernel.release,
            **shows[wish.part](wish, kernel, module),
        }
    except VmError as error:
        raise LabError(str(error)) from None
