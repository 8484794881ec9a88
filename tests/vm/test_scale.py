# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa.ko with 10,000 peers and 100,000 open RPCs.

One processor on counted instructions, so that what an RPC costs beside all that is a number
which no other program of this machine changes.
"""

from __future__ import annotations

import pytest
from conftest import RunGuest
from taps import Tap, options, tap

from lab.vm import Options

__all__ = ["tap"]

# Percent of the instructions of an RPC alone that one beside the load may take.
MOST = 150


@pytest.mark.once
@pytest.mark.long
def test_scale__peers_and_rpcs(guest: RunGuest, tap: Tap) -> None:
    made = options(Options(icount=True, memory=3072))
    tap(
        guest(
            f"COUNT={MOST}; . /t/scale.sh", "rpc", "users", options=made, timeout=900, check=False
        )
    )


@pytest.mark.once
@pytest.mark.long
def test_dump__sockets_make_it_no_dearer(guest: RunGuest, tap: Tap) -> None:
    made = options(Options(icount=True, memory=2048))
    tap(guest(". /t/dump.sh", "look", "users", options=made, timeout=400, check=False))
