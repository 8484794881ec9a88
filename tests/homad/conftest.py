# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where the modules of these tests are: here, and the test bed in tests/net.

When homad is built with sanitizers ($HOMA_SANITIZED), only tests marked `sanitized` run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE.parent / "net", HERE, HERE.parents[1]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sanitized: runs again with homad under ASan and UBSan")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "HOMA_SANITIZED" not in os.environ:
        return
    others = [item for item in items if not item.get_closest_marker("sanitized")]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item.get_closest_marker("sanitized")]
