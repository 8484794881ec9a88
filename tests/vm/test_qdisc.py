# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The homa qdisc: how Homa and TCP share a link, and that they can while it changes.

Shares and waiting times are asked on counted instructions, where time is the guest's own and
every run of a build is the same; the rest runs on two processors and asks for no time.
"""

from __future__ import annotations

import os

import pytest
from conftest import RunGuest
from taps import Tap, options, tap

from lab.vm import Kernel, Options

__all__ = ["tap"]


@pytest.mark.once
def test_shares__who_gets_what_and_who_waits(guest: RunGuest, tap: Tap) -> None:
    counted = options(Options(icount=True))
    script = ". /t/qdisc.sh"
    tap(guest(script, "share", "rpc", options=counted, timeout=400, check=False))


@pytest.mark.once
def test_forward__others_leave_room_for_the_own(guest: RunGuest, tap: Tap) -> None:
    counted = options(Options(icount=True))
    script = ". /t/qdisc_forward.sh"
    tap(guest(script, "share", options=counted, timeout=400, check=False))


@pytest.mark.once
def test_change__comes_and_goes_under_traffic(kernel: Kernel, guest: RunGuest, tap: Tap) -> None:
    # All arrangements on one kernel before a release, and on each what is most different.
    quick = (
        ""
        if kernel.name == "6.1" and os.environ.get("HOMA_VM_LONG") != "0"
        else "ROUNDS=2; WHATS='below_mq_and_tbf root';"
    )
    script = f"{quick} . /t/qdisc_change.sh"
    tap(guest(script, "share", "rpc", options=options(), timeout=400, check=False))


@pytest.mark.once
@pytest.mark.long
def test_device__byte_queue_limits_and_time(kernel: Kernel, guest: RunGuest, tap: Tap) -> None:
    if kernel.is_slow:
        pytest.skip("virtual time passes slowly there, and nothing else is checked")
    slow = Options(
        icount=True,
        netdevs=("hubport,hubid=0", "hubport,hubid=0"),
        nic="tx=timer,x-txtimer=1000000,x-txburst=8",
    )
    script = ". /t/qdisc_device.sh"
    tap(guest(script, "share", options=options(slow), timeout=400, check=False))
