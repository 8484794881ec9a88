# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""For pytest (-p lab.test.share): HOMA_TEST_SHARE=1/3 leaves of each three tests the second one.

Tests of a file that takes long can so run in several processes; together they have every test.
"""

from __future__ import annotations

import os
from typing import TypeVar

import pytest

T = TypeVar("T")


def of(items: list[T], share: str) -> list[T]:
    number, _, count = share.partition("/")
    return items[int(number) :: int(count)]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After all others: what they leave out is in no share."""
    mine = of(items, os.environ["HOMA_TEST_SHARE"])
    kept = set(mine)
    left = [item for item in items if item not in kept]
    items[:] = mine
    config.hook.pytest_deselected(items=left)
