# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The papers' numbers (published.toml)."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

FILE = Path(__file__).with_name("published.toml")


@functools.cache
def published() -> dict:
    """All of them, by figure."""
    return tomllib.loads(FILE.read_text())


def source(figure: str) -> str:
    """Where a figure's numbers stand."""
    return published()[figure]["source"]
