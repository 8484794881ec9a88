# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Soaks that end after so many stretches, whatever the time."""

from __future__ import annotations

import threading
from typing import cast

from lab.test import soak


def stretches(n: int, run: soak.Stretch = soak.stretch) -> soak.Stretch:
    """Runs stretches as `run` does, and ends the soak after `n` of them."""
    left = [n]

    def one(*args: object) -> None:
        run(*args)  # type: ignore[arg-type]
        left[0] -= 1
        if left[0] <= 0:
            cast(threading.Event, args[-1]).set()

    return one
