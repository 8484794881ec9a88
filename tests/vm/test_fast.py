# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Fast ways of homa.ko are taken where they should be, and only there; counters say so."""

from __future__ import annotations

import pytest
from conftest import RunGuest
from taps import Tap, options, tap

from lab.vm import Options

__all__ = ["tap"]


@pytest.mark.once
def test_fast_ways__taken_and_not_taken(guest: RunGuest, tap: Tap) -> None:
    tap(guest(". /t/fast.sh", "rpc", options=options(), timeout=300, check=False))


def test_busy_poll__a_thread_that_waits_polls_its_network_card(guest: RunGuest, tap: Tap) -> None:
    cards = Options(netdevs=("hubport,hubid=0", "hubport,hubid=0"))
    tap(guest(". /t/busy.sh", "rpc", "busy", options=options(cards), timeout=300, check=False))
