# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""VLANs, macvlans, bonds and bridges send by the link of the device below them."""

from __future__ import annotations

import pytest
from conftest import RunGuest
from taps import Tap, options, tap

from lab.vm import Options

__all__ = ["tap"]


@pytest.mark.oldest
def test_lower__devices_above_one_share_its_link(guest: RunGuest, tap: Tap) -> None:
    """On counted instructions: what two clients get in some time depends on nothing else."""
    counted = Options(icount=True, netdevs=("hubport,hubid=0",), load=("bonding", "macvlan", "vrf"))
    script = ". /t/lower.sh"
    made = options(counted)
    tap(guest(script, "rpc", "share", "look", options=made, timeout=400, check=False))
