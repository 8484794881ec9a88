# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""./homa hw demo, for a second."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hw.test_card import built  # noqa: F401


def demo(*options: str) -> str:
    command = [sys.executable, "-m", "lab.hw", "demo", "--seconds", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


def counters(said: str) -> dict[str, list[int]]:
    """Of each row the client's before and after, and the server's."""
    rows = re.findall(r"^(\w+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+)$", said, re.MULTILINE)
    return {name: [int(n.replace(",", "")) for n in numbers] for name, *numbers in rows}


def test_demo__all_is_answered_and_counted(tmp_path: Path) -> None:
    wave = tmp_path / "echo.vcd"
    said = demo("--wave", str(wave))
    assert "echo: hello" in said and " 0 failed" in said
    rows = counters(said)
    before, after, server_before, server_after = rows["rss_homa"]
    assert after > before and server_after > server_before
    assert wave.read_text().startswith("$version") and os.path.getsize(wave) > 100_000


@pytest.mark.parametrize("name", ["lso", "lro"])
def test_demo__without_an_offload(name: str) -> None:
    rows = counters(demo("--without", name))
    assert rows["super" if name == "lso" else "units"] == [0, 0, 0, 0]
    assert rows["rss_homa"][1]
