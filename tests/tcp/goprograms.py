# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs that Go makes, static: goecho of programs/, gohttp of bench/kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from netns import ROOT

SOURCES = {
    "goecho": ROOT / "tests" / "tcp" / "programs" / "goecho.go",
    "gohttp": ROOT / "bench" / "kernel" / "gohttp.go",
}


def build(name: str, folder: Path) -> Path:
    """The program, made in `folder`; the test is skipped where there is no Go."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.access(go, os.X_OK):
        pytest.skip("Go is not installed: apt install golang-go")
    made = folder / name
    environment = {"CGO_ENABLED": "0", "GO111MODULE": "off"}
    done = subprocess.run(
        [go, "build", "-o", str(made), str(SOURCES[name])],
        env=os.environ | environment, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return made
