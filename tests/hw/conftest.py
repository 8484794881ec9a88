# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where the modules of these tests are: the test bed in tests/net, and homad under test."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE.parent / "net", HERE.parent / "homad", HERE.parents[1]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
