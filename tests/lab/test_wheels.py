# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Private folders of wheels, without a registry."""

from pathlib import Path

import pytest

from lab import wheels
from lab.errors import LabError


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    found = tmp_path / "requirements.txt"
    found.write_text("homa-no-such-wheel==1.0\n")
    return found


def test_site__says_why_pip_failed_and_leaves_nothing(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(LabError, match="homa-no-such-wheel"):
        wheels.site(tmp_path / "private", requirements, 60)
    assert not (tmp_path / "private" / "site").exists()


def test_site__is_made_once_for_the_same_requirements(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def install(folder: Path, _requirements: Path, _seconds: int) -> None:
        folder.mkdir()
        made.append(folder)

    monkeypatch.setattr(wheels, "_install", install)
    folder = wheels.site(tmp_path, requirements, 60)
    assert wheels.site(tmp_path, requirements, 60) == folder and made == [folder]
    requirements.write_text("homa-no-such-wheel==2.0\n")
    assert wheels.site(tmp_path, requirements, 60) == folder and made == [folder] * 2
