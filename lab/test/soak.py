# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa fuzz --soak`: random worlds of tests/pair for as long as one likes, from a new place
each time, on all processors, plain and under sanitizers.

A *stretch* is one run of pair_soak: worlds of consecutive seeds from a place that is drawn anew, so
a run never repeats what an earlier one has shown. What fails is kept in a file with its output and
the command that does the same again, and the soak goes on elsewhere.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab.test import builds, process
from lab.test.context import ROOT, Context

BUILDS = ("plain", "asan")
PROGRAM = "pair_soak"
STRETCH_S = 60  # of processor time
# A busy machine gives a stretch less than a whole processor; one that lasts longer hangs.
PATIENCE = 30
SAY_EVERY_S = 60
_SEED = re.compile(r"PAIR_SEED=(\d+) at ")
_WORLDS = re.compile(r"\b(\d+) worlds\b")


@dataclass
class Finding:
    """A world that failed; `seed` is None if its stretch ended without naming one."""

    build: str
    first: int
    seed: int | None
    status: int | None
    again: str
    file: str = ""


@dataclass
class Soak:
    """What was run so far; `lock` guards it."""

    worlds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BUILDS, 0))
    findings: list[Finding] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def line(self) -> str:
        """How far it is."""
        seconds = max(time.monotonic() - self.begun, 1e-3)
        parts = [f"{n:,} {build} ({n / seconds:,.1f}/s)" for build, n in self.worlds.items() if n]
        return f"worlds: {', '.join(parts) or 'none yet'}; {len(self.findings)} failed"

    def as_json(self) -> dict[str, object]:
        """For a result file."""
        seconds = time.monotonic() - self.begun
        return {
            "seconds": round(seconds, 1),
            "worlds": sum(self.worlds.values()),
            "worlds_per_second": round(sum(self.worlds.values()) / max(seconds, 1e-3), 1),
            "by_build": self.worlds,
            "findings": len(self.findings),
            "found": [asdict(f) for f in self.findings],
        }


def places(seed: int) -> Iterator[int]:
    """Where stretches begin: far from each other, and never twice (0: from the system's chance)."""
    chance = random.Random(seed) if seed else random.SystemRandom()
    while True:
        # Seeds are 64 bits; a stretch has at most millions of them.
        yield chance.randrange(1 << 24, 1 << 62)


def judge(
    build: str, program: Path, first: int, seconds: float, status: int | None, text: str
) -> tuple[int, Finding | None]:
    """Worlds that went well, and what went wrong, of a stretch's output."""
    said = _WORLDS.findall(text)
    worlds = max(map(int, said), default=0)
    if status == 0 and worlds:
        return worlds, None
    named = _SEED.search(text)
    seed = int(named[1]) if named else None
    what = f"PAIR_SEED={seed}" if seed is not None else ""
    # A crash or a hang names no seed; the same stretch comes to the same world.
    what = what or f"PAIR_SOAK_FIRST={first} PAIR_SOAK_SECONDS={seconds * PATIENCE:.0f}"
    env = "".join(f"{k}={v} " for k, v in builds.BUILDS[build].env.items())
    again = f"{env}PAIR_TEST='*random_worlds*' {what} {program}"
    return (seed - first if seed is not None else 0), Finding(build, first, seed, status, again)


def stretch(
    context: Context,
    soak: Soak,
    build: str,
    program: Path,
    first: int,
    seconds: float,
    stopping: threading.Event,
) -> None:
    """Run one; what it said is kept if it failed."""
    log = context.logs / f"soak-{build}-{first}.log"
    env = {
        **builds.BUILDS[build].env,
        "PAIR_TEST": "*random_worlds*",
        "PAIR_SOAK_FIRST": str(first),
        "PAIR_SOAK_SECONDS": f"{seconds:.2f}",
    }
    limit = (seconds + 10) * PATIENCE
    status = process.run([program], log, cwd=ROOT, env=env, timeout=limit, verbose=False)
    if stopping.is_set() and status != 0:
        log.unlink(missing_ok=True)
        return
    worlds, finding = judge(build, program, first, seconds, status, log.read_text(errors="replace"))
    with soak.lock:
        soak.worlds[build] += worlds
        if finding:
            soak.findings.append(finding)
    if not finding:
        log.unlink()
        return
    finding.file = str(_keep(context, finding, log))
    print(f"failed: {finding.again}\n  kept: {finding.file}", flush=True)


def _keep(context: Context, finding: Finding, log: Path) -> Path:
    """Logs of runs go after a while; what failed stays beside the builds."""
    folder = context.builds / "soak-found"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{finding.build}-{finding.seed if finding.seed is not None else finding.first}.log"
    kept = folder / name
    kept.write_text(f"again: {finding.again}\n\n{log.read_text(errors='replace')}")
    return kept


Stretch = Callable[[Context, Soak, str, Path, int, float, threading.Event], None]


def run(
    context: Context,
    programs: Mapping[str, Path],
    seconds: float,
    seed: int,
    workers: int,
    one: Stretch = stretch,
    soak: Soak | None = None,
) -> Soak:
    """Stretches by `workers` at a time until `seconds` have gone (0: until somebody stops it)."""
    soak = soak or Soak()
    stopping = threading.Event()
    place, lock = places(seed), threading.Lock()
    end = soak.begun + seconds if seconds else None

    def work(build: str) -> None:
        while not stopping.is_set():
            left = end - time.monotonic() if end else STRETCH_S
            if left <= 0:
                return
            with lock:
                first = next(place)
            length = min(STRETCH_S, left)
            one(context, soak, build, programs[build], first, length, stopping)

    names = list(programs)
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, names[i % len(names)]) for i in range(workers)]
        try:
            while wait(futures, SAY_EVERY_S, FIRST_EXCEPTION).not_done:
                print(soak.line(), flush=True)
                if any(f.done() and f.exception() for f in futures):
                    break
        except process.Stopped:
            print()
        finally:
            stopping.set()
            if not all(f.done() for f in futures):
                process.kill_all()
    for future in futures:
        future.result()
    return soak


def collect(context: Context, kinds: tuple[str, ...], name: str) -> dict[str, Path]:
    """The program `name` of each build of `kinds`; none, and a message, if one has it not."""
    programs = {}
    for kind in kinds:
        program = builds.program(builds.ensure(context, kind), name)
        if not program:
            print(f"homa fuzz: the build {kind} has no {name}", file=sys.stderr)
            return {}
        programs[kind] = program
    return programs


def main(context: Context, seconds: float, seed: int, sanitized: bool, out: Path | None) -> int:
    """The exit status: 1 if a world failed, also after Ctrl-C."""
    programs = collect(context, ("asan",) if sanitized else BUILDS, PROGRAM)
    if not programs:
        return 1
    workers = max(len(os.sched_getaffinity(0)), len(programs))
    how_long = f"{seconds:,.0f} s" if seconds else "until Ctrl-C"
    print(f"random worlds, {' and '.join(programs)}, {workers} at a time, {how_long}")
    soak = run(context, programs, seconds, seed, workers)
    print(soak.line())
    for finding in soak.findings:
        print(f"failed: {finding.again}\n  kept: {finding.file}")
    if out:
        out.write_text(json.dumps(soak.as_json(), indent=2) + "\n")
    return 1 if soak.findings or not sum(soak.worlds.values()) else 0
