# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The simulator that is compiled by a profile: made once, the same results, else the plain one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.sim import profiled, program

SCRIPT = """#!/bin/sh
while [ "$1" != --json ]; do shift; done
echo '{"sim": {"digest": "%s"}}' >"$2"
"""


def simulator(path: Path, digest: str, more: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCRIPT % digest + more)
    path.chmod(0o755)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A build with a plain simulator; what make() builds has the digest in `digest`, each time."""
    monkeypatch.delenv("HOMA_SIM", raising=False)
    monkeypatch.setattr(profiled, "BUILD", tmp_path)
    monkeypatch.setattr(program, "BUILD", tmp_path)
    monkeypatch.setattr(profiled, "FOLDER", tmp_path / "profiled")
    made: list[str] = []

    class Built:
        plain = tmp_path / "sim" / "homa-sim"
        digest = "12"
        told: list[str] = []

    def make(folder: Path, where: Path) -> None:
        made.append(Built.digest)
        simulator(where, Built.digest)

    monkeypatch.setattr(profiled, "make", make)
    Built.made = made
    simulator(Built.plain, "12")
    return Built


def ensure(built) -> Path:
    built.told = []
    return profiled.ensure(built.told.append)


def test_ensure__is_made_once_and_again_for_another_simulator(built) -> None:
    first = ensure(built)
    assert first != built.plain and len(built.told) == 1
    assert ensure(built) == first and not built.told and len(built.made) == 1
    simulator(built.plain, "12", "# changed\n")
    assert ensure(built) == first and len(built.made) == 2


def test_ensure__another_digest_leaves_the_plain_one(built) -> None:
    built.digest = "13"
    assert ensure(built) == built.plain
    assert "digest" in built.told[-1] and "13" in built.told[-1]
    # It is tried again next time.
    built.digest = "12"
    assert ensure(built) != built.plain


def test_ensure__a_compiler_that_fails_leaves_the_plain_one(
    built, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(folder: Path, where: Path) -> None:
        profiled._run(["sh", "-c", "echo no space >&2; exit 1"])

    monkeypatch.setattr(profiled, "make", fails)
    assert ensure(built) == built.plain and "no space" in built.told[-1]


def test_ensure__a_named_simulator_is_that_one(built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMA_SIM", str(built.plain))
    assert ensure(built) == built.plain and not built.made
