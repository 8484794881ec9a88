# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What every stage of a run shares: places, switches, and the tally."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT_RUNS = 10


@dataclass
class Failure:
    """A failed case and what it said."""

    name: str
    output: str


@dataclass
class Tally:
    """Counts of one stage; `notes` are shown (reasons for skips, figures). `unsteady`: tests that
    failed and passed when they were run again, each with what it had said."""

    passed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return len(self.failures)

    def fail(self, name: str, output: str = "") -> None:
        self.failures.append(Failure(name, output.strip()))

    def skip(self, name: str, reason: str) -> None:
        self.skipped += 1
        self.notes.append(f"skipped {name}: {reason}" if reason else f"skipped {name}")

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.skipped += other.skipped
        self.failures += other.failures
        self.notes += [n for n in other.notes if n not in self.notes]
        self.unsteady += other.unsteady


class Context:
    """One run of the tests."""

    def __init__(
        self,
        verbose: bool,
        wanted: list[str],
        *,
        vm_debug: bool = False,
        vm_kcsan: bool = False,
        vm_rt: bool = False,
        vm_all: bool = False,
        vm_kernels: Sequence[str] = (),
        record_counts: str = "",
        again: bool = False,
        slowest: int = 0,
        long: bool = False,
    ) -> None:
        self.verbose = verbose
        self.vm_debug = vm_debug
        self.vm_kcsan = vm_kcsan
        self.vm_rt = vm_rt
        self.vm_all = vm_all
        self.vm_kernels = vm_kernels
        self.record_counts = record_counts
        self.again = again
        self.slowest = slowest
        self.long = long
        self.wanted = wanted
        self.builds = Path(f"{os.environ.get('HOMA_BUILD') or ROOT / 'build'}-test").resolve()
        self.prefix = f"hmt{os.getpid()}"
        self.logs = self._make_logs()
        # Build name: "" if it succeeded, else what went wrong.
        self.built: dict[str, str] = {}

    def log(self, name: str) -> Path:
        return self.logs / (re.sub(r"[^\w.-]+", "-", name) + ".log")

    def _make_logs(self) -> Path:
        top = Path(os.environ.get("HOMA_BUILD") or ROOT / "build") / "test-logs"
        logs = top / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        logs.mkdir(parents=True)
        runs = sorted(p for p in top.iterdir() if p.is_dir() and not p.is_symlink())
        for old in runs[:-KEPT_RUNS]:
            if not _alive(old.name.rpartition("-")[2]):
                shutil.rmtree(old, ignore_errors=True)
        return logs


def _alive(pid: str) -> bool:
    return pid.isdigit() and Path("/proc", pid).exists()
