# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Who may catch a mutant: groups of programs that must fail on it, and how one is watched.

A new catcher is one line in CATCHERS: its name, the ninja targets of its programs (a pattern), the
words of its command line, and a pattern for what it says of a fault. A program that noticed nothing ends with
a status of `passes`. The words may contain {seconds}, what `--minutes` leaves to one mutant.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

# A case of cmocka that failed, in TAP.
_CASE = re.compile(r"^not ok \d+ - (\S+)")


@dataclass(frozen=True)
class Catcher:
    """A group of programs.

    `targets`: patterns of paths in the build directory. `sources`: folders whose files decide,
    with the engine's, what comes out. `timed`: it looks for as long as it is given, so that time
    is no sign of a hang.
    """

    name: str
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    words: tuple[str, ...] = ()
    says: re.Pattern[str] = _CASE
    passes: tuple[int, ...] = (0,)
    timed: bool = False
    env: dict[str, str] = field(default_factory=dict, hash=False)

    def programs(self, known: list[str]) -> list[str]:
        """Those of the build's targets that are its programs."""
        return [name for name in known if any(fnmatch(name, t) for t in self.targets)]


# The soak begins elsewhere in each run, unless it is told; a table should be the same tomorrow.
_FIXED = {"PAIR_SOAK_FIRST": "1", "CMOCKA_MESSAGE_OUTPUT": "TAP"}

CATCHERS = (
    Catcher(
        "unit",
        ("tests/unit/unit_base_*", "tests/unit/unit_engine_*", "tests/unit/unit_wire_*"),
        ("tests/unit",),
        env=_FIXED,
    ),
    Catcher("pair", ("tests/pair/pair_*",), ("tests/pair",), env=_FIXED),
    Catcher(
        "explore",
        ("tests/explore/explore",),
        ("tests/explore",),
        ("--quiet", "--workers", "1", "--memory", "512", "--seconds", "{seconds}"),
        says=re.compile(r"^(\w+: .+); looking for a shorter way"),
        passes=(0, 3),
        timed=True,
    ),
)


@dataclass(frozen=True)
class End:
    """How a program ended: `caught` is what noticed the fault, "" if nothing did."""

    caught: str
    seconds: float


class Watch:
    """Starts programs and reads what they say; `stop` ends those that run, from another thread."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self.stopping = threading.Event()

    def stop(self) -> None:
        self.stopping.set()
        with self._lock:
            for child in self._running:
                _kill(child)

    def run(
        self, catcher: Catcher, program: Path, seconds: float, limit: float, folder: Path
    ) -> End:
        """One program until it ends, names a case that failed, or has run for `limit` seconds."""
        words = [w.format(seconds=int(seconds)) for w in catcher.words]
        begun = time.monotonic()
        child = subprocess.Popen(
            [program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **catcher.env},
            start_new_session=True,
            text=True,
            errors="replace",
        )
        with self._lock:
            self._running.add(child)
            if self.stopping.is_set():
                _kill(child)
        timer = threading.Timer(limit, _kill, (child,))
        timer.start()
        try:
            said = self._read(catcher, child)
        finally:
            timer.cancel()
            _kill(child)
            status = child.wait()
            with self._lock:
                self._running.discard(child)
        took = time.monotonic() - begun
        return End(_judge(program.name, said, status, took >= limit, catcher), round(took, 2))

    @staticmethod
    def _read(catcher: Catcher, child: subprocess.Popen[str]) -> str:
        """What the first fault that it names is called; "" if it ended without one."""
        assert child.stdout is not None
        with child.stdout as out:
            for line in out:
                match = catcher.says.match(line)
                if match:
                    return match[1]
        return ""


def _kill(child: subprocess.Popen[str]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass


def _judge(program: str, said: str, status: int, late: bool, catcher: Catcher) -> str:
    if said:
        return f"{program}: {said}"
    if late:
        return "" if catcher.timed else f"{program} hangs"
    if status < 0:
        return f"{program} dies of {signal.Signals(-status).name}"
    return "" if status in catcher.passes else f"{program} ends with status {status}"
