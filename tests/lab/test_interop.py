# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test --interop`: which stacks there are, and what is said where one cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from lab.errors import LabError
from lab.test import interop
from lab.test.context import Context


class _Context:
    """No run, but a place for logs."""

    verbose = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def test_stack__that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no stack bsd; there are linux, lwip, smoltcp, gvisor"):
        interop.run(cast(Context, _Context(tmp_path)), ["lwip", "bsd"])


def test_smoltcp__without_cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    why = interop.build_smoltcp(cast(Context, _Context(tmp_path)), tmp_path)
    assert "needs cargo" in why


def test_smoltcp__where_cargo_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the network, say. A program of an earlier run must not be taken for the new one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    cargo = folder / "cargo"
    cargo.write_text("#!/bin/sh\nexit 101\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    program = tmp_path / "tests" / "tcp" / "smoltcp" / "peer_smoltcp"
    program.parent.mkdir(parents=True)
    program.write_text("old")
    why = interop.build_smoltcp(cast(Context, _Context(tmp_path)), tmp_path)
    assert why.startswith("cargo ended with status 101")
    assert not program.exists()
