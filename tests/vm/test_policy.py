# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs of cgroups and security modules are asked about packets of Homa sockets."""

from __future__ import annotations

import pytest
from conftest import RunGuest
from taps import Tap, options, tap

from lab.vm import Kernel

__all__ = ["tap"]


def test_policy__refuses_for_a_while(kernel: Kernel, guest: RunGuest, tap: Tap) -> None:
    if kernel.is_slow:
        pytest.skip("that kernel is built without programs for cgroups and security modules")
    tap(guest(". /t/policy.sh", "rpc", "policy", options=options(), timeout=300, check=False))
