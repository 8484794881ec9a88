# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Calls that behave otherwise than with the kernel where only one end is homad's, as expected.toml says: a change of
that is noticed. All other cases run so with HOMA_TCP_WAYS=server,client."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import test_calls
from ways import PROGRAMS, Side

WAYS = ["server", "client"]
EXPECTED = tomllib.loads((test_calls.HERE / "expected.toml").read_text())
# The two ends of these wait until the test gives up.
ENDLESS = {"linger_waits", "linger_zero_drops", "linger_zero_exit"}
CASES = sorted({case for way in WAYS for case in EXPECTED[way]} - ENDLESS)

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "tcp_calls").exists(), reason="tcp_calls is not built"
)


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """Which end is homad's."""
    return str(request.param)


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, hosts: tuple[Side, Side], tmp_path: Path) -> None:
    test_calls.test_calls(case, "v4", hosts, tmp_path)
