# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the reports of all parts of `./homa bench kernel` have in common."""

from __future__ import annotations

from collections.abc import Iterable

from lab.console import console


def show_failed(failed: Iterable[str]) -> None:
    """A line for each measurement that failed."""
    for line in failed:
        console().print(f"failed: {line}", markup=False)
