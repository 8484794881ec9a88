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
    """Others have another folder, and the first one stays, for a program may be using it; the link is
    to the last one."""
    made = []

    def install(folder: Path, said: Path, _seconds: int) -> None:
        folder.mkdir()
        (folder / "wheel").write_text(said.read_text())
        made.append(folder)

    monkeypatch.setattr(wheels, "_install", install)
    first = wheels.site(tmp_path, requirements, 60)
    assert wheels.site(tmp_path, requirements, 60) == first and len(made) == 1
    assert (tmp_path / "site").resolve() == first
    requirements.write_text("homa-no-such-wheel==2.0\n")
    second = wheels.site(tmp_path, requirements, 60)
    assert second != first and len(made) == 2
    assert [(folder / "wheel").read_text()[-4:] for folder in (first, second)] == ["1.0\n", "2.0\n"]
    assert (tmp_path / "site").resolve() == second


def test_site__keeps_what_is_there_when_pip_fails(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "_install", lambda folder, _said, _seconds: folder.mkdir())
    first = wheels.site(tmp_path, requirements, 60)
    monkeypatch.undo()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    requirements.write_text("homa-no-such-wheel==2.0\n")
    with pytest.raises(LabError, match="homa-no-such-wheel"):
        wheels.site(tmp_path, requirements, 60)
    assert first.exists() and (tmp_path / "site").resolve() == first


def test_site__of_an_older_tree_is_no_link(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "_install", lambda folder, _said, _seconds: folder.mkdir())
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "wheel").write_text("")
    found = wheels.site(tmp_path, requirements, 60)
    assert (tmp_path / "site").resolve() == found
    assert [path.parent.name[:12] for path in tmp_path.glob("*/wheel")] == ["site-before-"]
