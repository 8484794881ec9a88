# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where the modules of these tests are: here, the daemon's in tests/homad and the test bed in tests/net.

What expected.toml names must fail: such a test is marked so, and a pass of it is a failure.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE.parent / "net", HERE.parent / "homad", HERE, HERE.parents[1]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import ways  # noqa: E402 - found by the paths above

EXPECTED = tomllib.loads((HERE / "expected.toml").read_text())
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces, so it needs root")
]


def name_of(item: pytest.Item) -> str:
    """The test as expected.toml names it: without its way, the case of tcp_calls alone."""
    values = getattr(item, "callspec", None)
    case = values.params.get("case") if values else None
    return str(case) if case else getattr(item, "originalname", item.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        values = getattr(item, "callspec", None)
        reason = (
            EXPECTED.get(values.params.get("way", ""), {}).get(name_of(item)) if values else None
        )
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="module", params=ways.WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How the two hosts of a test speak TCP."""
    return str(request.param)


@pytest.fixture(scope="module")
def hosts(way: str) -> Iterator[tuple[ways.Side, ways.Side]]:
    """The host of servers and that of clients."""
    with ways.two_sides(way) as sides:
        yield sides
