# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Ctrl-C as a wish, not as an accident."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM end the trace in good order; a second one at once."""
    seen = False

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        if seen:
            raise KeyboardInterrupt
        seen = True

    before = {s: signal.signal(s, handler) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: seen
    finally:
        for number, old in before.items():
            signal.signal(number, old)
