# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa fuzz --world`: clusters of engines in virtual time whose faults a seed chooses, from a
new place each time, on all processors, plain and under sanitizers.

Works as the soak does (lab/test/soak.py), with the program of tests/world. A world that fails is
made smaller before it is kept: the file names the faults that it needs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lab.test import builds, process, soak
from lab.test.context import ROOT, Context

PROGRAM = "world"
STRETCH_S = 60.0  # of processor time
SHRINK_S = 1800.0
ENOUGH_WORLDS = 1000  # after so many each kind of fault must have happened
NIGHT_S = 12 * 3600.0
YEAR_S = 365 * 24 * 3600.0
_JSON = re.compile(r"^json: (\{.*\})$", re.M)
_SEED = re.compile(r"^seed (\d+)$", re.M)
# What may well not happen, or is not wanted.
_RARE = ("ring_drops", "executed_again_beyond_the_promise")


@dataclass
class Worlds(soak.Soak):
    """What was run so far, and what happened in it."""

    virtual: float = 0.0
    cpu: float = 0.0
    events: int = 0
    rpcs: int = 0
    settle: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    hosts: int = 0
    keep: Path | None = None

    def add(self, said: dict) -> None:
        """A stretch's figures."""
        self.virtual += said["virtual_seconds"]
        self.cpu += said["seconds"]
        self.events += said["events"]
        self.rpcs += said["rpcs"]
        self.settle = max(self.settle, said["settle_seconds"])
        self.faults.update(said["faults"])

    def pace(self) -> float:
        """Virtual seconds per second of a processor."""
        return self.virtual / self.cpu if self.cpu else 0.0

    def never(self) -> list[str]:
        """Faults that never happened, once there were enough worlds."""
        if sum(self.worlds.values()) < ENOUGH_WORLDS:
            return []
        return [
            name
            for name, n in self.faults.items()
            if not n and name not in _RARE and not name.startswith("again_")
        ]

    def line(self) -> str:
        """How far it is."""
        years = self.pace() * 2 * NIGHT_S / YEAR_S
        return (
            f"{super().line()}; {self.virtual:,.0f} virtual seconds, {self.pace():,.0f} to 1 of a"
            f" processor ({years:,.0f} years a night on two); longest end {self.settle:.3f} s"
        )

    def as_json(self) -> dict[str, object]:
        """For a result file."""
        return {
            **super().as_json(),
            "virtual_seconds": round(self.virtual),
            "virtual_per_second": round(self.pace(), 1),
            "events": self.events,
            "rpcs": self.rpcs,
            "settle_seconds": self.settle,
            "faults": dict(self.faults),
            "never": self.never(),
        }


def _command(build: str, words: list[str | Path]) -> str:
    env = "".join(f"{k}={v} " for k, v in builds.BUILDS[build].env.items())
    return env + shlex.join(map(str, words))


def judge(
    build: str, program: Path, first: int, hosts: list[str], status: int | None, text: str
) -> tuple[dict | None, soak.Finding | None]:
    """A stretch's figures, and what went wrong; a good status without figures is wrong, too."""
    said = _JSON.search(text)
    figures = json.loads(said[1]) if said else None
    if status == 0 and figures and figures["worlds"]:
        return figures, None
    seeds = [int(n) for n in _SEED.findall(text)]
    seed = seeds[-1] if seeds and not figures else None
    where = ["--seed", str(seed)] if seed is not None else ["--first", str(first)]
    again = _command(build, [program, *where, *hosts])
    return figures, soak.Finding(build, first, seed, status, again)


def stretch(
    context: Context,
    done: soak.Soak,
    build: str,
    program: Path,
    first: int,
    seconds: float,
    stopping: threading.Event,
) -> None:
    """Run one; what it said is kept if it failed."""
    assert isinstance(done, Worlds)
    log = context.logs / f"world-{build}-{first}.log"
    hosts = ["--hosts", str(done.hosts)] if done.hosts else []
    words = [program, "--each", "--first", str(first), "--seconds", f"{seconds:.2f}", *hosts]
    limit = (seconds + 10) * soak.PATIENCE
    env = builds.BUILDS[build].env
    status = process.run(words, log, cwd=ROOT, env=env, timeout=limit, verbose=False)
    if stopping.is_set() and status != 0:
        log.unlink(missing_ok=True)
        return
    text = log.read_text(errors="replace")
    figures, finding = judge(build, program, first, hosts, status, text)
    with done.lock:
        if figures:
            done.add(figures)
        done.worlds[build] += figures["worlds"] if figures else max(len(_SEED.findall(text)) - 1, 0)
        if finding:
            done.findings.append(finding)
    if finding:
        finding.file = str(_keep(context, done, finding, program, hosts, text))
        print(f"failed: {finding.again}\n  kept: {finding.file}", flush=True)
    log.unlink()


def _keep(
    context: Context,
    done: Worlds,
    finding: soak.Finding,
    program: Path,
    hosts: list[str],
    text: str,
) -> Path:
    """The output without the seeds of good worlds, and the faults that the failure needs."""
    folder = done.keep or context.builds / "world-found"
    folder.mkdir(parents=True, exist_ok=True)
    name = finding.seed if finding.seed is not None else finding.first
    smaller = ""
    if finding.seed is not None:
        log = context.logs / f"world-shrink-{name}.log"
        words = [program, "--seed", str(finding.seed), *hosts, "--shrink"]
        env = builds.BUILDS[finding.build].env
        process.run(words, log, cwd=ROOT, env=env, timeout=SHRINK_S, verbose=False)
        smaller = log.read_text(errors="replace")
        log.unlink()
    kept = folder / f"{finding.build}-{name}.log"
    kept.write_text(f"again: {finding.again}\n\n{_SEED.sub('', text).strip()}\n\n{smaller}")
    return kept


def replay(program: Path, build: str, seed: int, hosts: int) -> int:
    """One world, before everybody's eyes; the exit status."""
    words: list[str | Path] = [program, "--seed", str(seed)]
    if hosts:
        words += ["--hosts", str(hosts)]
    print(_command(build, words), flush=True)
    env = os.environ | builds.BUILDS[build].env
    return subprocess.run(list(map(str, words)), cwd=ROOT, env=env, check=False).returncode


def main(
    context: Context,
    seconds: float,
    seed: int,
    hosts: int,
    keep: Path | None,
    sanitized: bool,
    out: Path | None,
) -> int:
    """The exit status: 1 if a world failed or a fault never happened, also after Ctrl-C."""
    kinds = ("asan",) if sanitized else ("plain",) if seed else soak.BUILDS
    programs = soak.collect(context, kinds, PROGRAM)
    if not programs:
        return 1
    if seed:
        return replay(programs[kinds[0]], kinds[0], seed, hosts)
    workers = max(len(os.sched_getaffinity(0)), len(programs))
    print(f"clusters, {' and '.join(kinds)}, {workers} at a time, {seconds:,.0f} s")
    done = Worlds(hosts=hosts, keep=keep)
    done.begun = time.monotonic()
    soak.run(context, programs, seconds, 0, workers, stretch, done)
    print(done.line())
    print("faults: " + ", ".join(f"{name} {n:,}" for name, n in done.faults.items()))
    for finding in done.findings:
        print(f"failed: {finding.again}\n  kept: {finding.file}")
    for name in done.never():
        print(f"never happened: {name}")
    if out:
        out.write_text(json.dumps(done.as_json(), indent=2) + "\n")
    return 1 if done.findings or done.never() or not sum(done.worlds.values()) else 0
