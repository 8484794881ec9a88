# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Streams over Homa in homa.ko: ordered bytes by plain socket calls, and peers that lie."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import RunGuest
from taps import Tap, options, tap

from lab import nginx
from lab.vm import Kernel, Missing
from lab.vm.bench import programs

__all__ = ["tap"]


@pytest.mark.debug
@pytest.mark.oldest
def test_stream__sockets_hosts_and_liars(kernel: Kernel, guest: RunGuest, tap: Tap) -> None:
    quick = "QUICK=1;" if kernel.is_debug and os.environ.get("HOMA_VM_DEBUG") == "0" else ""
    script = f"{quick} . /t/stream.sh"
    tap(guest(script, "stream", options=options(), timeout=400, check=False))


def _go(folder: Path) -> list[Path]:
    """The program in Go; nothing where there is no Go."""
    try:
        return [programs.go_program(folder)]
    except Missing:
        return []


def test_give__unmodified_programs(guest: RunGuest, tap: Tap, tmp_path: Path) -> None:
    """homa-streams makes the sockets of chosen programs streams over Homa."""
    here = [Path(f"/usr/bin/redis-{name}") for name in ("server", "cli", "benchmark")]
    here = here if all(p.exists() for p in here) else []
    here += [p for p in (Path("/usr/sbin/nginx"),) if p.exists()]
    here += _go(tmp_path)
    script = ". /t/stream_give.sh"
    conf = nginx.configuration("/run/ng", "127.0.0.1:82", "/run/www", http="sendfile on;")
    made = options()
    made = replace(made, files={**made.files, "etc/nginx.conf": conf})
    tap(guest(script, "homa-streams", *here, options=made, timeout=300, check=False))
