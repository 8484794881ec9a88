# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What counts as a fault of the RTL that was noticed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.hw import mutants


def outcome(status: int, said: str) -> subprocess.CompletedProcess[str]:
    """A bench that has ended."""
    return subprocess.CompletedProcess([], status, said, "")


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> mutants.Mutant:
    """The first mutant whose fault a bench has to notice, in a folder of its own."""
    monkeypatch.setattr(mutants, "BUILD", tmp_path)
    monkeypatch.setattr(mutants.environment, "variables", dict)
    return next(m for m in mutants.table().values() if not m.by.startswith(mutants.PROOF))


@pytest.mark.parametrize(("status", "failed", "seen"), [(0, 0, False), (1, 3, True)])
def test_bench__says_whether_it_failed(
    one: mutants.Mutant, monkeypatch: pytest.MonkeyPatch, status: int, failed: int, seen: bool
) -> None:
    done = outcome(status, f"parser 64: {failed} failed\n")
    monkeypatch.setattr(mutants.subprocess, "run", lambda *_, **__: done)
    assert mutants.noticed(one) is seen


def test_bench__that_did_not_end_has_noticed_nothing(
    one: mutants.Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("bench", mutants.SECONDS)

    monkeypatch.setattr(mutants.subprocess, "run", late)
    with pytest.raises(LabError, match="not tried to an end"):
        mutants.noticed(one)


def test_bench__that_did_not_compile_has_noticed_nothing(
    one: mutants.Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants.subprocess, "run", lambda *_, **__: outcome(1, "a tool failed"))
    with pytest.raises(LabError, match="not tried"):
        mutants.noticed(one)
