# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where a result comes from: machine, kernel, commit. It stands in every result file."""

from __future__ import annotations

import functools
import subprocess

from lab import machine
from lab.paths import ROOT


@functools.cache
def commit() -> str:
    """The commit that is checked out, with "-dirty" if files differ from it; "" outside of git."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run([*words, "--exclude=*"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def here() -> dict[str, object]:
    """This machine, its kernel and load, the commit, the moment."""
    return {**machine.describe().as_json(), "commit": commit()}
