# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What moved since a scoreboard was saved, and what only looks so."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lab.targets import saved, scoreboard
from lab.errors import LabError
from lab.machine import Machine
from lab.targets.goals import Outcome, Target, Value

NOW = Machine("cpu", 2, "6.1", 4096, True, 0.5, "2026-11-22T10:00:00+00:00")


def outcome(name: str, value: Value | None, better: str = "lower") -> Outcome:
    return Outcome(Target(name, "x {json}", "v", 1.0, better, "why"), value, "" if value else "no")


def one(median: float) -> Value:
    return Value(median, median, median, 1)


def before(value: Value) -> saved.Before:
    return saved.Before(value, "abc", NOW.date, "cpu", 2)


@pytest.mark.parametrize(
    ("old", "new", "better", "verdict"),
    [
        (one(100), one(105), "lower", "same"),
        (one(100), one(106), "lower", "worse"),
        (one(100), one(106), "higher", "better"),
        (one(100), one(94), "lower", "better"),
        (one(0), one(1), "lower", "worse"),
        (one(-2), one(-1), "higher", "better"),
        (Value(100, 90, 120, 5), Value(115, 110, 130, 5), "lower", "same"),
        (Value(100, 90, 109, 5), Value(115, 110, 130, 5), "lower", "worse"),
        (Value(100, 90, 120, 5), one(115), "lower", "worse"),
    ],
)
def test_moves__outside_the_noise(old: Value, new: Value, better: str, verdict: str) -> None:
    (move,) = saved.moves([outcome("a", new, better)], {"a": before(old)})
    assert move.verdict == verdict


def test_moves__rows_without_a_partner() -> None:
    found = saved.moves([outcome("a", one(1)), outcome("b", None)], {"b": before(one(1))})
    assert [m.verdict for m in found] == ["new", "not measured"]


def test_save__each_row_is_compared_with_the_newest_that_has_it(tmp_path: Path) -> None:
    later = Machine("other", 8, "6.1", 4096, True, 0.5, "2026-11-23T10:00:00+00:00")
    first = saved.save(NOW, [outcome("a", one(1)), outcome("b", one(2))], "c1", tmp_path)
    again = saved.save(NOW, [outcome("x", one(1))], "c1", tmp_path)
    saved.save(later, [outcome("b", one(3)), outcome("a", None)], "c2", tmp_path)
    assert (first.name, again.name) == ("2026-11-22-c1.json", "2026-11-22-c1-2.json")
    found = saved.load(tmp_path)
    assert {k: (v.value.median, v.commit) for k, v in found.items()} == {
        "a": (1, "c1"),
        "b": (3, "c2"),
        "x": (1, "c1"),
    }
    (line,) = saved.elsewhere(saved.moves([outcome("a", one(1)), outcome("b", one(3))], found), NOW)
    assert line == "measured on another machine (other, 8 cores): b"
    assert json.loads(first.read_text())["machine"]["kernel"] == "6.1"


def test_save__nothing_measured(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="nothing to save"):
        saved.save(NOW, [outcome("a", None)], "c", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"commit": "c", "machine": {"date": "d"}}'])
def test_load__names_a_damaged_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(LabError, match="odd.json"):
        saved.load(tmp_path)


def test_load__the_projects_own() -> None:
    for name, row in saved.load().items():
        assert row.commit and row.value.rounds >= 1, name


def test_commit__says_if_files_differ(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e")
        subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True)

    with pytest.raises(LabError, match="no git repository"):
        saved.commit(tmp_path)
    git("init")
    (tmp_path / "f").write_text("1")
    git("add", "f")
    git("commit", "-m", "m")
    clean = saved.commit(tmp_path)
    (tmp_path / "f").write_text("2")
    assert saved.commit(tmp_path) == f"{clean}-dirty"


def test_move_table__shows_better_and_worse() -> None:
    from rich.console import Console

    rows = [outcome("a", one(200)), outcome("b", one(50)), outcome("c", one(1))]
    found = saved.moves(rows, {"a": before(one(100)), "b": before(one(100))})
    out = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    out.print(scoreboard.move_table(found))
    text = out.export_text()
    assert "+100 %" in text and "worse" in text
    assert "-50 %" in text and "better" in text and "new" in text
