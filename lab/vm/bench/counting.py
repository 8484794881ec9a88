# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Kernel instructions per RPC: one processor on counted instructions, one boot for all cases.

The count is of everything that the guest's kernel executes between two marks in the client:
both hosts, softirqs, the scheduler and the timer ticks that fall in.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from lab.vm import Kernel, VmError, run
from lab.vm.bench import hosts, programs, symbols
from lab.vm.bench.hosts import Case
from lab.vm.bench.profile import Section, sections
from lab.vm.bench.symbols import Symbols

WARMUP = 600
COUNT = 2000
TIMEOUT_S = 240

_BLOCK = (("poll_usecs", "0"),)
_POLL = (("poll_usecs", "50"),)


def _small() -> tuple[Case, ...]:
    cases = [Case("udp_1", "UDP, blocking", "udp")]
    for outstanding in (1, 16):
        words = ("--outstanding", str(outstanding))
        what = f"{outstanding} outstanding"
        cases += [
            Case(f"tcp_{outstanding}", f"TCP, blocking, {what}", "tcp", words),
            Case(f"homa_block_{outstanding}", f"Homa, blocking, {what}", "homa", words, _BLOCK),
            Case(f"homa_poll_{outstanding}", f"Homa, polling, {what}", "homa", words, _POLL),
            Case(
                f"exchange_block_{outstanding}",
                f"Homa, one call sends and receives, blocking, {what}",
                "exchange",
                words,
                _BLOCK,
            ),
            Case(
                f"exchange_poll_{outstanding}",
                f"Homa, one call sends and receives, polling, {what}",
                "exchange",
                words,
                _POLL,
            ),
        ]
    bound = ("--outstanding", "1", "--bound")
    what = "Homa, blocking, 1 outstanding, the server bound to one address"
    return (*cases, Case("homa_bound_1", what, "homa", bound, _BLOCK))


def _large() -> tuple[Case, ...]:
    # How long a reader polls depends on where the RPC before ended: a mean over fewer is chance.
    one_way = ("--request", "500000", "--warmup", "20", "--count", "400")
    echo = (*one_way, "--response", "500000")
    return (
        Case("tcp_500k", "TCP, 500 KB one way", "tcp", one_way),
        Case("homa_500k", "Homa, polling, 500 KB one way", "homa", one_way, _POLL),
        Case("homa_500k_block", "Homa, blocking, 500 KB one way", "homa", one_way, _BLOCK),
        Case("tcp_500k_echo", "TCP, 500 KB echo", "tcp", echo),
        Case("homa_500k_echo", "Homa, polling, 500 KB echo", "homa", echo, _POLL),
    )


CASES = _small()
LARGE = _large()


@dataclass
class Count:
    """A case's instructions per RPC."""

    case: Case
    kernel: float
    user: float
    section: Section


@dataclass
class Counts:
    """A boot: what was counted, under which settings; symbols if there was a profile."""

    counts: dict[str, Count]
    offloads: str
    failed: list[str] = field(default_factory=list)
    symbols: Symbols | None = None

    def ratio(self, key: str, to: str) -> float | None:
        """Kernel instructions of one case to those of another."""
        if key not in self.counts or to not in self.counts:
            return None
        return self.counts[key].kernel / self.counts[to].kernel


def script(cases: tuple[Case, ...], offloads: str, module: Path | None, *, profile: bool) -> str:
    """What the guest does. TCP and UDP come before the module, and TCP again after it."""
    text = hosts.begin(offloads) + "sleep 2\n"
    text += "".join(case.line("--mark") for case in _timed(cases, homa=False))
    if module:
        text += hosts.load(module)
        text += "".join(case.line("--mark") for case in _timed(cases, homa=True))
        text += "".join(
            case.line("--mark", "--label", f"{case.key}_with_module")
            for case in _timed(cases, homa=False)
            if case.proto == "tcp"
        )
    return text + (symbols.SCRIPT if profile else "")


def _timed(cases: tuple[Case, ...], *, homa: bool) -> list[Case]:
    size = ("--warmup", str(WARMUP), "--count", str(COUNT))
    return [
        Case(c.key, c.label, c.proto, (*size, *c.options), c.settings)
        for c in cases
        if c.is_homa == homa
    ]


def measure(
    kernel: Kernel,
    module: Path | None,
    *,
    cases: tuple[Case, ...] = CASES,
    offloads: str = "default",
    profile: bool = False,
) -> Counts:
    """One boot. Without a module only what does not need it."""
    plugin = programs.counting_plugin()
    with tempfile.TemporaryDirectory(prefix="homa-count-") as folder:
        out = Path(folder) / "counts"
        words = f"{plugin},out={out}" + (",profile=on" if profile else "")
        options = hosts.options(kernel, module, icount=True, plugins=(words,))
        text = script(cases, offloads, module, profile=profile)
        result = run(kernel, text, options, TIMEOUT_S)
        found = list(sections(out.read_text().splitlines())) if out.exists() else []
    said = hosts.parse(result.output)
    if result.problems:
        said.failed.append(f"the kernel complained: {result.problems.splitlines()[0]}")
    if not said.results or len(found) != len(said.results):
        raise VmError(
            f"{len(said.results)} results and {len(found)} counts came out of the guest; it "
            f"said:\n{result.output[-3000:]}\n{result.problems}"
        )
    known = {case.key: case for case in cases}
    counts = {}
    for section, line in zip(found, said.results, strict=True):
        key, rpcs = str(line["label"]), int(line["count"])  # type: ignore[call-overload]
        case = known.get(key.removesuffix("_with_module"))
        if case:
            counts[key] = Count(case, section.kernel / rpcs, section.user / rpcs, section)
            counts[key].section.rpcs = rpcs
    names = Symbols.from_output(result.output) if profile else None
    return Counts(counts, said.offloads, said.failed, names)
