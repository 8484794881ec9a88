# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Fuzzing of homa.ko: random packets through a tap and random system calls, in guests with the
debug kernel, whose every complaint is a finding.

A seed is one guest. The IP version and the way packets come in follow from it, the rounds also from
what the kernel says they reached (tests/vm/steer.h). So a guest names each round before it lives
it, its log has them all, and `--replay LOG` lives them again.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from lab.test import builds
from lab.test.context import Context
from lab.vm import Guest as Machine
from lab.vm import Kernel, Options, VmError, build, klog, prepare
from lab.vm.kernels import DEBUG

KINDS = ("packets", "calls")
# How packets reach the module; each is an entry of its own (tests/vm/tap.h).
WAYS = ("4 plain", "6 frags", "4 napi", "6 plain", "4 frags", "6 napi")
# Long enough to be worth a boot, short enough to be repeated.
LIFE_S = 300
SHOWN_LINES = 70
_AT = re.compile(r"^# at (\d+)", re.M)
REPLAY = "/fuzz/replay"
_COUNT = re.compile(r"(\d+) ([a-z]+)")


@dataclass
class Guest:
    """What one guest did; `finding` is what the kernel or the fuzzer complained of."""

    kind: str
    seed: int
    seconds: int
    counts: dict[str, int] = field(default_factory=dict)
    finding: str = ""
    log: str = ""
    replay: str = ""

    @property
    def program(self) -> str:
        """The fuzzer's command in the guest."""
        how = f"{WAYS[self.seed % len(WAYS)]} " if self.kind == "packets" else ""
        rounds = f" {REPLAY}" if self.replay else ""
        return f"vm_fuzz_{self.kind} {how}{self.seed} {self.seconds}{rounds}"

    @property
    def again(self) -> str:
        """The command that does the same."""
        return f"./homa fuzz --kernel --replay {self.log}"


def replayed(log: Path) -> Guest:
    """The guest of a log, with its rounds; VmError if it is none."""
    text = log.read_text(errors="replace")
    head = re.match(r"vm_fuzz_(\w+) (?:[46] \w+ )?(\d+) (\d+)", text)
    rounds = "".join(f"{line}\n" for line in text.splitlines() if _AT.match(line))
    if not head or head[1] not in KINDS or not rounds:
        raise VmError(f"{log} is no log of ./homa fuzz --kernel")
    return Guest(head[1], int(head[2]), int(head[3]), replay=rounds)


def plan(kinds: list[str], seconds: int, seed: int) -> Iterator[Guest]:
    """Guests one after the other, `seconds` in all; the kinds take turns, seeds go on from `seed`."""
    number = 0
    while seconds > 0:
        # A rest that is not worth a guest is added to the last.
        now = seconds if seconds < LIFE_S * 3 // 2 else LIFE_S
        yield Guest(kinds[number % len(kinds)], seed + number // len(kinds), now)
        seconds -= now
        number += 1


def judge(guest: Guest, output: str, problems: str, status: int) -> None:
    """Fill in counts and what was found."""
    counts = [x for x in output.splitlines() if x.startswith("# ") and not _AT.match(x)]
    found = {word: int(n) for n, word in _COUNT.findall(" ".join(counts))}
    guest.counts = found if "\nok\n" in output else {}
    if problems:
        guest.finding = f"the kernel complained{_when(output)}:\n{problems}"
    elif status != 0 or "\nok\n" not in output:
        guest.finding = f"the fuzzer ended with status {status}:\n{_without_rounds(output)[-3000:]}"


def _when(output: str) -> str:
    rounds = _AT.findall(output)
    return f" (round {rounds[-1]} or before)" if rounds else ""


def run_one(context: Context, kernel: Kernel, options: Options, guest: Guest) -> None:
    """One guest from boot to power-off."""
    # What a program does to itself is no complaint of the kernel's.
    script = f"echo 0 >/proc/sys/debug/exception-trace; {guest.program}"
    log = context.log(f"fuzz-kernel-{guest.kind}-{guest.seed}")
    guest.log = str(log)
    if guest.replay:
        options = replace(options, files={**options.files, REPLAY: guest.replay})
    said = ""
    try:
        with Machine(kernel, options, first=script) as machine:
            try:
                done = machine.wait(guest.seconds + 180)
                said, kernel_log = done.output, machine.finish()
            except VmError:
                said = said or machine.said()
                raise
    except VmError as error:
        guest.finding = f"the guest ended{_when(said)}:\n{_without_rounds(str(error))}"
        log.write_text(f"{guest.program}\n{said}\n{error}\n")
        return
    log.write_text(f"{guest.program}\n{said}\n{kernel_log}\n")
    judge(guest, said, klog.report(kernel_log), done.status)


def _without_rounds(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _AT.match(line))


def describe(guest: Guest) -> str:
    """A line for a guest that ended."""
    what = ", ".join(f"{n:,} {word}" for word, n in guest.counts.items()) or "ended early"
    way = f" ({WAYS[guest.seed % len(WAYS)]})" if guest.kind == "packets" else ""
    found = " - FOUND SOMETHING" if guest.finding else ""
    return f"{guest.kind}{way}, seed {guest.seed}, {guest.seconds} s: {what}{found}"


def summary(guests: list[Guest]) -> dict:
    """Figures of all: sums, of edges the most in one guest (each begins anew)."""
    totals: dict[str, Counter[str]] = {}
    for guest in guests:
        total = totals.setdefault(guest.kind, Counter())
        edges = max(total["edges"], guest.counts.get("edges", 0))
        total.update({**guest.counts, "seconds": guest.seconds})
        total["edges"] = edges
    return {
        "seeds": sorted({guest.seed for guest in guests}),
        "findings": sum(bool(guest.finding) for guest in guests),
        **{kind: dict(counter) for kind, counter in totals.items()},
        "guests": [{**asdict(guest), "replay": bool(guest.replay)} for guest in guests],
    }


def main(
    context: Context,
    kinds: list[str],
    seconds: int,
    seed: int,
    replay: Path | None = None,
    out: Path | None = None,
) -> int:
    """`seconds` in all, of these kinds (none: both), or a log's rounds; the exit status."""
    again = [replayed(replay)] if replay else []
    directory = builds.ensure(context, "plain")
    kernel = prepare(DEBUG)
    programs = tuple(directory / f"tests/vm/vm_fuzz_{kind}" for kind in KINDS)
    options = Options(modules=(build(kernel),), programs=programs)
    seed = seed or (again[0].seed if again else 0) or random.SystemRandom().randrange(1, 1 << 31)
    what = f"again what {replay} has" if replay else f"{seconds} s from seed {seed}"
    print(f"fuzzing homa.ko under {kernel.release}, {what}", flush=True)
    guests = []
    begun = time.monotonic()
    for guest in again or plan(kinds or list(KINDS), seconds, seed):
        run_one(context, kernel, options, guest)
        guests.append(guest)
        print(describe(guest), flush=True)
        if guest.finding:
            print("\n".join(guest.finding.splitlines()[:SHOWN_LINES]))
            print(f"log: {guest.log}\nagain: {guest.again}", flush=True)
    figures = summary(guests)
    for kind in KINDS:
        if kind in figures:
            print(f"{kind}: " + ", ".join(f"{n:,} {what}" for what, n in figures[kind].items()))
    took = time.monotonic() - begun
    print(f"guests: {len(guests)}, {figures['findings']} findings in {took:.0f} s")
    if out:
        out.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if figures["findings"] else 0
