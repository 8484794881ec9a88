# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Running ./homa lab run as a process of its own, on real packets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from conftest import ROOT
from test_net import wait_until

from lab.net import guardian


def start(*argv: str) -> subprocess.Popen[str]:
    """`./homa lab run` with these words."""
    return subprocess.Popen(
        [sys.executable, "-m", "lab", "run", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def killed_leaves_nothing(process: subprocess.Popen[str], namespaces: int) -> None:
    """Kill it as soon as it has so many namespaces; they go."""
    prefix = f"{guardian.PREFIX}{process.pid}-"
    wait_until(lambda: len(guardian.namespaces(prefix)) == namespaces)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not guardian.namespaces(prefix))
