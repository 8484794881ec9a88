# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Removes the network namespaces of this run that tests left behind (killed ones do).

A test names its namespaces `hmt` and the pid of the runner or of its own process, then
something that is not a digit. Only names with a pid of this run are touched.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

FOLDER = Path("/run/netns")
_NAME = re.compile(r"^hmt(\d+)(\D|$)")


def leftovers(pids: set[int]) -> list[str]:
    try:
        names = sorted(p.name for p in FOLDER.iterdir())
    except OSError:
        return []
    matches = ((n, _NAME.match(n)) for n in names)
    return [n for n, m in matches if m and int(m.group(1)) in pids]


def remove(pids: set[int]) -> list[str]:
    """Kill what still runs in them and delete them; returns their names."""
    names = leftovers(pids)
    for name in names:
        inside = subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
        )
        for pid in inside.stdout.split():
            if int(pid) != os.getpid():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except OSError:
                    pass
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return names
