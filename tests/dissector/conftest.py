# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Lets the tests import shark.py and their neighbours' helpers, wherever pytest is started."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("dissector", "net", "fuzz", "homad")]
