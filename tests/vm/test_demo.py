# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""./homa demo --via kernel, from end to end: a network and all transports in one guest."""

from __future__ import annotations

import pytest

from lab.demo import guest
from lab.demo.report import from_json
from lab.demo.settings import check
from lab.vm import Kernel


@pytest.mark.once
@pytest.mark.long
def test_demo__homa_and_tcp_in_a_guest(kernel: Kernel) -> None:
    """Results are whole and have slowdowns; how fast anything was does not matter."""
    if kernel.name != guest.KERNEL:
        pytest.skip(f"the demo takes kernel {guest.KERNEL}")
    settings = check(2, 1, "w3", 0.5, "50mbit", 1, "homa,tcp", None, "", "kernel")
    report = guest.measure(settings)
    assert report.transports() == ["homa", "tcp"]
    for run in report.runs:
        assert run.completed > 0 and run.failed == 0
        assert run.overall.slowdown_p50 and run.overall.slowdown_p50 > 0.5
    assert report.runs[0].via == "kernel"
    document = report.as_json()
    assert document["network"]["mode"] == "kernel"
    assert from_json(document).runs == report.runs
