# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Files of recorded arrivals: lines "time_ns,src,dst,bytes" (docs/simulator.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lab.errors import LabError


def recorded(folder: Path, name: str, lines: Iterator[str]) -> str:
    """A file of `lines` in `folder`, whole or not at all; its path."""
    path = folder / f"arrivals-{name}.csv"
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        part.write_text("\n".join(lines) + "\n")
        part.replace(path)
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}; give another --out") from None
    return str(path)
