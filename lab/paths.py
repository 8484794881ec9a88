# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where the tree, its build and its load generator are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from lab.errors import LabError

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("HOMA_BUILD") or ROOT / "build").resolve()


def homa_bench() -> Path:
    """The load generator; LabError if it has not been built."""
    program = Path(os.environ.get("HOMA_BENCH") or BUILD / "bench" / "homa-bench")
    if not os.access(program, os.X_OK):
        raise LabError(f"homa-bench is not built ({program} is missing); run ./homa build")
    return program


def homa_flows() -> Path:
    """The generator of TCP connections; LabError if it has not been built."""
    program = BUILD / "bench" / "flows" / "homa-flows"
    if not os.access(program, os.X_OK):
        raise LabError(f"homa-flows is not built ({program} is missing); run ./homa build")
    return program


def ring() -> Path:
    """Four processes that do next to nothing (tests/counts/ring.c); LabError if not built."""
    program = BUILD / "tests" / "counts" / "ring"
    if not os.access(program, os.X_OK):
        raise LabError(f"the ring is not built ({program} is missing); run ./homa build")
    return program


def known_transports() -> set[str]:
    """The transports that homa-bench was built with."""
    done = subprocess.run([homa_bench(), "list"], capture_output=True, text=True, check=False)
    return {line.split()[0] for line in done.stdout.splitlines() if line.split()}
