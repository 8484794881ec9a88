# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What CPUs do to each other: locks and cache lines per RPC, with 1 to 16 emulated CPUs.

The counts are of core_count.c. A lock is taken when a function that takes one is called; it was
contended when the function that waits was called, too. Distributions' kernels have no lockstat.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lab.vm import Kernel, VmError, run
from lab.vm.bench import hosts, programs, symbols
from lab.vm.bench.hosts import Case
from lab.vm.bench.profile import Section, functions, own
from lab.vm.bench.symbols import Function, Symbols

CPUS = (1, 2, 4, 8)
# The guest's program has a thread on each CPU and a plugin's mask a bit for each.
MOST_CPUS = 16
WARMUP = 100  # RPCs of each client before the measured part
COUNT = 300  # and in it
OUTSTANDING = 4  # of each client
TIMEOUT_S = 400
# Of the clocks that the emulator can make slow (slow_clock.c) this one is read without a lock. The
# processor's counter goes on at its usual speed.
_CLOCK = "clocksource=acpi_pm tsc=unstable"

# Eight CPUs on two stand still for longer than an RPC may be silent.
_SETTINGS = (("poll_usecs", "0"), ("timeout_us", "60000000"))

_TAKES = re.compile(
    r"_raw_(spin|read|write)_(lock|trylock)(_bh|_irq|_irqsave)?"
    r"|mutex_(lock|trylock)(_interruptible|_killable|_io)?"
    r"|down(_read|_write)?(_interruptible|_killable|_trylock)?"
)
_WAITS = re.compile(
    r"(native_)?queued_(spin|read|write)_lock_slowpath"
    r"|__mutex_lock(_interruptible|_killable)?_slowpath"
    r"|rwsem_down_(read|write)_slowpath|__down(_interruptible|_killable)?"
)
# What a timer's interrupt calls once: the guest's clock is the real one, and emulation is slow.
_TICK = "__sysvec_apic_timer_interrupt"


@dataclass
class Traced:
    """What the plugin wrote. Addresses and how often; `lines`: virtual address, transfers, CPUs, and
    the instructions that wrote and used it at the last of them."""

    cpus: dict[int, tuple[int, int]] = field(default_factory=dict)
    blocks: list[tuple[int, int, int]] = field(default_factory=list)
    calls: list[tuple[int, int, int, int]] = field(default_factory=list)
    transfers: list[tuple[int, int, int, int]] = field(default_factory=list)
    lines: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    writes: int = 0
    late: int = 0


def traced(rows: Iterable[str]) -> Traced:
    """A plugin's file."""
    found = Traced()
    for row in rows:
        kind, *words = row.split()
        if kind == "cpu":
            found.cpus[int(words[0])] = (int(words[1]), int(words[2]))
        elif kind == "block":
            found.blocks.append((int(words[0], 16), int(words[1]), int(words[2])))
        elif kind in ("call", "transfer"):
            a, b, c = (int(word, 16) for word in words[:3])
            kept = found.calls if kind == "call" else found.transfers
            kept.append((a, b, c, int(words[3])))
        elif kind == "line":
            seen, writer, user = (int(words[n], 16) for n in (1, 4, 5))
            found.lines.append((seen, int(words[2]), int(words[3]), writer, user))
        elif kind == "writes":
            found.writes = int(words[0])
        elif kind == "late":
            found.late = int(words[0])
    return found


def takes(function: Function) -> bool:
    """It takes a lock."""
    return not function.module and bool(_TAKES.fullmatch(_plain(function.name)))


def waits(function: Function) -> bool:
    """It waits for a lock that another has."""
    return not function.module and bool(_WAITS.fullmatch(_plain(function.name)))


def _plain(name: str) -> str:
    """Without what the compiler adds to the name of a function that it has split."""
    return re.sub(r"[.](isra|constprop|part|cold).*", "", name)


@dataclass
class Cores:
    """One number of CPUs; figures are per RPC unless they say otherwise.

    `by_cpu`: kernel instructions of each. `own`: those of homa.ko's functions. `sites`: (function
    that takes a lock) → locks taken and contended. `pairs`: (function that wrote, function that
    used) → transfers. `shared`: lines that were transferred at all, of the whole run, `lines`
    the first of them: name, transfers, number of CPUs, functions that wrote and used
    it at the last transfer.
    """

    cpus: int
    rpcs: int
    kernel: float
    user: float
    by_cpu: list[float]
    own: float
    ticks: float
    taken: Counter[str]
    contended: Counter[str]
    sites: dict[str, tuple[float, float]]
    transfers: float
    writes: float
    to_own: float
    pairs: Counter[tuple[str, str]]
    shared: int
    lines: list[tuple[str, float, int, str, str]]
    late: int

    @property
    def contended_share(self) -> float:
        """Contended locks to all that were taken."""
        return sum(self.contended.values()) / max(sum(self.taken.values()), 1e-9)

    def as_json(self, top: int) -> dict[str, object]:
        """For a result file."""
        sites = sorted(self.sites.items(), key=lambda site: -site[1][0])
        return {
            "cpus": self.cpus,
            "rpcs": self.rpcs,
            "kernel": self.kernel,
            "user": self.user,
            "kernel_by_cpu": self.by_cpu,
            "own": self.own,
            "timer_interrupts": self.ticks,
            "locks": {
                "taken": sum(self.taken.values()),
                "contended": sum(self.contended.values()),
                "contended_share": self.contended_share,
                "taken_by": dict(self.taken.most_common()),
                "contended_by": dict(self.contended.most_common()),
                "sites": [
                    {"function": name, "taken": taken, "contended": waited}
                    for name, (taken, waited) in sites[:top]
                ],
            },
            "transfers": {
                "all": self.transfers,
                "to_writes": self.writes,
                "to_homa": self.to_own,
                "lines": self.shared,
                "pairs": [
                    {"writer": writer, "user": user, "transfers": times}
                    for (writer, user), times in self.pairs.most_common(top)
                ],
                "top_lines": [
                    {"line": name, "transfers": times, "cpus": n, "writer": writer, "user": user}
                    for name, times, n, writer, user in self.lines[:top]
                ],
            },
            "turns_not_waited_for": self.late,
        }


def summed(cpus: int, rpcs: int, found: Traced, known: Symbols) -> Cores:
    """Addresses become functions, and counts figures per RPC."""
    section = Section(rpcs=rpcs, blocks=found.blocks)
    rows = functions(section, known)
    transfers = sum(times for *_, times in found.transfers)
    pairs, to_own = _pairs(found, known)
    lines = sorted(found.lines, key=lambda line: -line[1])
    return Cores(
        cpus=cpus,
        rpcs=rpcs,
        kernel=sum(kernel for kernel, _ in found.cpus.values()) / rpcs,
        user=sum(user for _, user in found.cpus.values()) / rpcs,
        by_cpu=[found.cpus.get(cpu, (0, 0))[0] / rpcs for cpu in range(cpus)],
        own=own(rows),
        ticks=sum(row.calls for row in rows if _plain(row.function.name) == _TICK),
        taken=Counter({r.function.name: r.calls for r in rows if r.calls and takes(r.function)}),  # type: ignore[dict-item]
        contended=Counter(
            {r.function.name: r.calls for r in rows if r.calls and waits(r.function)}  # type: ignore[dict-item]
        ),
        sites=_sites(found, known, rpcs),
        transfers=transfers / rpcs,
        writes=found.writes / rpcs,
        to_own=to_own / rpcs,
        pairs=Counter({key: times / rpcs for key, times in pairs.items()}),  # type: ignore[dict-item]
        shared=len(found.lines),
        lines=[
            (_place(seen, known), times / rpcs, n, _name(known.find(a)), _name(known.find(b)))
            for seen, times, n, a, b in lines[:200]
        ],
        late=found.late,
    )


def _name(function: Function) -> str:
    return f"{function.name} [{function.module}]" if function.module else function.name


def _sites(found: Traced, known: Symbols, rpcs: int) -> dict[str, tuple[float, float]]:
    """Who takes locks, and for how many of them it has to wait."""
    taken: Counter[str] = Counter()
    waited: Counter[str] = Counter()
    for before, origin, target, times in found.calls:
        function = known.find(target)
        if target != function.address:
            continue
        if takes(function):
            taken[_name(known.find(origin))] += times
        elif waits(function) and takes(known.find(origin)):
            waited[_name(known.find(before))] += times
    return {name: (times / rpcs, waited[name] / rpcs) for name, times in taken.items()}


def _pairs(found: Traced, known: Symbols) -> tuple[Counter[tuple[str, str]], int]:
    """Transfers by who wrote and who used; how many of them homa.ko uses."""
    pairs: Counter[tuple[str, str]] = Counter()
    to_own = 0
    for writer, user, site, times in found.transfers:
        function, caller = known.find(user), known.find(site)
        name = _name(function)
        # That a lock's word was transferred says nothing without who wanted the lock.
        lock = takes(function) or waits(function)
        if lock:
            name += f" of {_name(caller)}"
        if "homa" in (function.module, caller.module if lock else ""):
            to_own += times
        pairs[_name(known.find(writer)), name] += times
    return pairs, to_own


def _place(address: int, known: Symbols) -> str:
    """What is at an address: a variable of the kernel's or a module's, else memory."""
    if address >= 0xFFFFFFFF80000000:
        found = known.find(address)
        return f"{_name(found)}+{address - found.address:#x}"
    return f"memory at {address & ~63:#x}"


def script(cpus: int, module: Path, count: int, warmup: int) -> str:
    """What the guest does: load, run RPCs, tell its symbols."""
    words: tuple[str, ...] = ("--cores", str(cpus), "--outstanding", str(OUTSTANDING))
    words += ("--count", str(count), "--warmup", str(warmup))
    case = Case(f"cores_{cpus}", "", "homa", words, _SETTINGS)
    text = hosts.begin("default") + hosts.load(module)
    return text + case.line("--mark") + symbols.SCRIPT_ALL


def measure(
    kernel: Kernel, module: Path, cpus: int, *, count: int = COUNT, warmup: int = WARMUP
) -> Cores:
    """One boot with so many CPUs."""
    plugin = programs.counting_plugin("core_count")
    with tempfile.TemporaryDirectory(prefix="homa-cores-") as folder:
        out = Path(folder) / "counts"
        options = hosts.options(
            kernel,
            module,
            smp=cpus,
            append=_CLOCK,
            plugins=(f"{plugin},out={out}",),
            preload=str(programs.slow_clock()),
        )
        result = run(kernel, script(cpus, module, count, warmup), options, TIMEOUT_S)
        found = traced(out.read_text().splitlines()) if out.exists() else Traced()
    said = hosts.parse(result.output)
    if result.problems or said.failed or len(said.results) != 1 or not found.cpus:
        raise VmError(
            f"{cpus} CPUs: nothing was counted; the guest said:\n"
            f"{result.output.partition('@@symbols')[0][-3000:]}\n{result.problems}"
        )
    return summed(cpus, cpus * count, found, Symbols.from_output(result.output))
