# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Streams over Homa in homa.ko: ordered bytes by plain socket calls, and peers that lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import RunGuest
from taps import Tap, options, tap

from lab.vm import Kernel

__all__ = ["tap"]


@pytest.mark.debug
def test_stream__sockets_hosts_and_liars(kernel: Kernel, guest: RunGuest, tap: Tap) -> None:
    quick = "QUICK=1;" if kernel.is_debug and os.environ.get("HOMA_VM_DEBUG") == "0" else ""
    script = f"{quick} . /t/stream.sh"
    tap(guest(script, "stream", options=options(), timeout=400, check=False))


def test_give__unmodified_programs(guest: RunGuest, tap: Tap) -> None:
    """A BPF program makes the sockets of chosen programs streams over Homa."""
    redis = [Path(f"/usr/bin/redis-{name}") for name in ("server", "cli", "benchmark")]
    programs = redis if all(p.exists() for p in redis) else []
    nginx = Path("/usr/sbin/nginx")
    programs += [nginx] if nginx.exists() else []
    script = ". /t/stream_give.sh"
    tap(guest(script, "stream", *programs, options=options(), timeout=200, check=False))
