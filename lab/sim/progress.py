# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Progress on standard error: a bar on a terminal, a line now and then when piped."""

from __future__ import annotations

import threading
import time

from lab.console import Bar
from lab.sim import program

_LINE_EVERY_S = 15.0


def clock(seconds: float) -> str:
    """ "0:42", "1:02:03"."""
    whole = int(seconds + 0.5)
    hours, minutes, left = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def simulated(nanoseconds: float) -> str:
    """Simulated time with a unit: "12.3 ms"."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= scale:
            return f"{nanoseconds / scale:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


class _Line(Bar):
    """A bar with a text that changes, or a line with it now and then."""

    def __init__(self, total: float) -> None:
        super().__init__(total)
        self._said = time.monotonic()

    def show(self, done: float, text: str) -> None:
        if self._bar:
            self._bar.update(self._task, completed=done, description=text)
        elif time.monotonic() - self._said >= _LINE_EVERY_S:
            self._said = time.monotonic()
            self.say(text)


class Board(_Line):
    """Several runs: how many have ended, and when all will have."""

    def __init__(self, title: str, runs: int, where: str) -> None:
        super().__init__(runs)
        self._title, self._runs, self._where = title, runs, where
        self._start = time.monotonic()
        self._shares: dict[int, float] = {}
        self._ended: set[int] = set()
        self._lock = threading.Lock()

    def tell(self, index: int, share: float) -> None:
        """Run `index` has come so far; called from any thread."""
        with self._lock:
            if index not in self._ended:
                self._shares[index] = share
            self._draw()

    def ended(self, index: int) -> None:
        """Run `index` is over."""
        with self._lock:
            self._ended.add(index)
            self._shares[index] = 1.0
            self._draw()

    def _draw(self) -> None:
        done = sum(self._shares.values())
        spent = time.monotonic() - self._start
        left = f"{clock(spent / done * (self._runs - done))} left" if done > 0.2 else "estimating"
        self.show(
            done,
            f"{self._title}: {len(self._ended)} of {self._runs} runs, {self._where}, "
            f"{clock(spent)} passed, {left}",
        )


class Single(_Line):
    """One run: simulated time, wall time, messages, time left."""

    def __init__(self) -> None:
        super().__init__(1.0)

    def tell(self, progress: program.Progress) -> None:
        """For program.run()."""
        share, spent = progress.share, progress.wall_s
        left = f"{clock(spent / share - spent)} left" if share > 0.01 else "estimating"
        self.show(
            share,
            f"{simulated(progress.simulated_ns)} of {simulated(progress.end_ns)} simulated "
            f"in {clock(spent)}, {progress.messages:,} messages, {left}",
        )
