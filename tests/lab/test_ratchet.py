# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A count that rose must fail, whatever else is in the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.targets import ratchet
from lab.errors import UsageError
from lab.test import counts
from lab.test.context import Tally

TEXT = """\
# why
#
# how

["Debian gcc 12.2.0, glibc 2.36, x86_64"]
cpu = "old"
["Debian gcc 12.2.0, glibc 2.36, x86_64".counts]
"a" = 100.0
"b" = 200.0

["elsewhere"]
["elsewhere".counts]
"a" = 7
"""
PLACE = "Debian gcc 12.2.0, glibc 2.36, x86_64"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ratchet.toml"
    path.write_text(TEXT)
    return path


def test_compare__two_percent_are_the_limit() -> None:
    numbers = {"a": 1000.0, "b": 1000.0, "c": 1000.0}
    verdict = ratchet.compare(numbers, {"a": 1020.0, "b": 1020.1, "c": 980.0})
    (risen,) = verdict.risen
    assert "b: 1,020.1 instructions, recorded 1,000.0 (+2.0%)" == risen
    assert (verdict.sunk, verdict.unknown) == ([], [])
    assert ratchet.compare(numbers, {"a": 1, "b": 979, "c": 1000}).sunk[1].startswith("b: 979.0")


def test_compare__what_is_not_counted_any_more_fails() -> None:
    verdict = ratchet.compare({"a": 1.0, "gone": 1.0}, {"a": 1.0, "new": 5.0})
    assert verdict.risen == ["gone is recorded and was not counted"]
    assert verdict.unknown == ["new: 5.0 instructions, nothing to compare with"]


def test_judge__fails_skips_and_passes() -> None:
    tally = Tally()
    numbers = {PLACE: {"a": 100.0, "b": 200.0}}
    counts.judge(tally, PLACE, {"a": 103.0, "b": 150.0, "c": 1.0}, numbers, "p")
    assert (tally.passed, tally.failed, tally.skipped) == (1, 1, 1)
    assert "a: 103.0" in tally.failures[0].name
    assert "--record-counts=all" in tally.failures[0].output
    assert any("b: 150.0" in note and "-25.0%" in note for note in tally.notes)


def test_judge__another_compiler_is_skipped_with_the_reason() -> None:
    tally = Tally()
    counts.judge(tally, "Ubuntu gcc 13.3.0", {"a": 9e9}, {PLACE: {"a": 100}}, "p")
    assert (tally.passed, tally.failed, tally.skipped) == (0, 0, 1)
    assert "Ubuntu gcc 13.3.0" in tally.notes[0] and PLACE in tally.notes[0]


def test_record__lower_never_raises(file: Path) -> None:
    said = ratchet.record(PLACE, {"a": 90.04, "b": 250.0, "c": 5.0}, "lower", file)
    assert ratchet.load(file) == {PLACE: {"a": 90.0, "b": 200.0, "c": 5.0}, "elsewhere": {"a": 7}}
    assert said == [f"{PLACE}: a: 100.0 → 90.0", f"{PLACE}: c: nothing → 5.0"]
    assert file.read_text().startswith("# why\n#\n# how\n\n[")


def test_record__all_raises_and_forgets(file: Path) -> None:
    ratchet.record(PLACE, {"b": 250.0}, "all", file)
    ratchet.record('a "new" one', {"b": 1.0}, "lower", file)
    assert ratchet.load(file) == {
        PLACE: {"b": 250.0},
        "elsewhere": {"a": 7},
        'a "new" one': {"b": 1.0},
    }
    with pytest.raises(UsageError, match="lower or all"):
        ratchet.record(PLACE, {}, "more", file)


@pytest.mark.parametrize("text", ["x = 1", "[x]", "[x.counts]\na = 'b'", "[x.counts]\na = 0", "["])
def test_load__damaged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="r.toml"):
        ratchet.load(path)


def test_the_projects_own_file(tmp_path: Path) -> None:
    places = ratchet.load()
    figures = {name for names in counts.PROGRAMS.values() for name in names}
    assert figures <= set(places[PLACE])
    copy = tmp_path / "ratchet.toml"
    shutil.copy(ratchet.FILE, copy)
    place = next(iter(places))
    assert ratchet.record(place, places[place], "all", copy) == []
    assert ratchet.load(copy) == places


def test_compiler_name__without_what_only_the_package_changes() -> None:
    said = "gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright"
    assert ratchet.compiler_name("gcc", said) == "Debian gcc 12.2.0"
    said = "gcc (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0"
    assert ratchet.compiler_name("gcc", said) == "Ubuntu gcc 13.3.0"
    assert ratchet.compiler_name("cc", "odd one") == "odd one"
