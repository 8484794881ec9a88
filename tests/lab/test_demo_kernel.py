# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The demo in a virtual machine: what is refused. tests/vm/test_demo.py runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.demo.settings import Settings, check
from lab.errors import UsageError


def settings(
    hosts: int = 3,
    link: str = "",
    workload: str = "w4",
    transports: str = "homa,tcp",
    via: str = "kernel",
) -> Settings:
    return check(hosts, 1, workload, 0.5, link, 1, transports, None, "", via)


def test_kernel__links_are_slower_by_default() -> None:
    assert settings().link_bps == 100_000_000
    assert settings(via="program").link_bps == 200_000_000
    assert settings(link="50mbit").link_bps == 50_000_000


def test_kernel__what_emulated_processors_cannot_do_is_refused(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("100,1\n")
    for wrong, what in (
        ({"hosts": 9}, "--hosts 9"),
        ({"link": "200mbit"}, "--link"),
        ({"workload": str(sizes)}, "--workload"),
        ({"transports": "homa,udp"}, "udp"),
    ):
        with pytest.raises(UsageError, match=what):
            settings(**wrong)  # type: ignore[arg-type]
        settings(**wrong, via="service")  # type: ignore[arg-type]
