# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How busy the machine was in a window, whoever used it: with too much of that no run counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from lab.bench.light import idle_s


class Watch:
    """Looks at the machine's clock of idleness again and again; the first look in the window and
    the last one count."""

    def __init__(
        self,
        idle: Callable[[], float] = idle_s,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._idle, self._now = idle, now
        self._looks: list[tuple[float, float]] = []

    def forget(self) -> None:
        """Begin anew: the run is repeated."""
        self._looks = []

    def look(self, opens: float, closes: float) -> None:
        """Look, if the window (of the monotonic clock) is open."""
        now = self._now()
        if opens <= now <= closes:
            self._looks = [*self._looks[:1], (now, self._idle())]

    def share(self) -> float:
        """Of all processors, the share that was not idle; 1 if that is not known."""
        if len(self._looks) < 2:
            return 1.0
        (t0, i0), (t1, i1) = self._looks
        passed = (t1 - t0) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, 1 - (i1 - i0) / passed)) if passed > 0 else 1.0
