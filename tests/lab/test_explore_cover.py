# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa explore --coverage`: what gcov's answer and the list of unreachable branches become."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lab.test import builds, explore_cover
from lab.test.context import Context
from lab.test.explore_cover import Line, Listed, Place

ANSWER = {
    "files": [
        {
            "file": "../../engine/homa/homa_rx.c",
            "lines": [
                {
                    "line_number": 7,
                    "count": 5,
                    "function_name": "rx",
                    "branches": [{"count": 5}, {"count": 0}],
                },
                {"line_number": 8, "count": 0, "function_name": "rx", "branches": [{"count": 0}]},
                {"line_number": 9, "count": 1, "function_name": "rx", "branches": []},
            ],
        },
        {"file": "/usr/include/stdlib.h", "lines": []},
    ]
}


def lines() -> dict[Place, Line]:
    """Three functions: one reached by halves, one whole, one never."""
    return {
        Place("engine/homa/a.c", 3, "one"): Line(Counter({0: 4, 1: 0}), "if (x)"),
        Place("engine/homa/a.c", 9, "one"): Line(Counter({0: 0, 1: 2}), "if (x)"),
        Place("engine/homa/a.c", 12, "one"): Line(Counter({0: 1, 1: 2}), "if (y)"),
        Place("engine/homa/b.c", 1, "never"): Line(Counter({0: 0, 1: 0}), "while (z)"),
    }


def test_add_gcov__sums_up_what_several_objects_did() -> None:
    found: dict[Place, Line] = {}
    explore_cover.add_gcov(ANSWER, found)
    explore_cover.add_gcov(ANSWER, found)
    assert [(p.file, p.line, p.function) for p in found] == [
        ("engine/homa/homa_rx.c", 7, "rx"),
        ("engine/homa/homa_rx.c", 8, "rx"),
    ]
    first, second = found.values()
    assert (dict(first.taken), first.reached, first.left) == ({0: 10, 1: 0}, 1, 1)
    assert (second.reached, second.left) == (0, 1)


def test_rows__tell_reached_unreachable_and_missing_apart() -> None:
    listed = [Listed("a host calls it", "never"), Listed("too long", "one", "if (x)", 1)]
    files, missing = explore_cover.rows(lines(), listed)
    assert [(r.name, r.reached, r.unreachable, r.missing) for r in files] == [
        ("engine/homa/b.c", 0, 2, 0),
        ("engine/homa/a.c", 4, 1, 1),
    ]
    assert missing == [(Place("engine/homa/a.c", 9, "one"), 1)]
    text = explore_cover.table(files).splitlines()
    assert text[-1].split() == ["all", "4", "3", "1", "80.0", "%"]


def test_stale__names_what_is_reached_or_gone() -> None:
    assert not explore_cover.stale(lines(), [Listed("r", "never"), Listed("r", "one", "if (x)", 2)])
    wrong = explore_cover.stale(
        lines(),
        [
            Listed("r", "one"),
            Listed("r", "one", "if (x)", 3),
            Listed("r", "one", "if (y)", 1),
            Listed("r", "gone"),
            Listed("r", "never", "if (z)", 1),
        ],
    )
    assert wrong == [
        "one(): 4 of its branches are reached",
        "one: if (x): 3 branches are listed, 2 are not reached",
        "one: if (y): 1 branches are listed, 0 are not reached",
        "gone(): there is no such code with branches",
        "never: if (z): there is no such code with branches",
    ]


def test_read_list__wants_a_reason_and_each_entry_once() -> None:
    text = '[[class]]\nreason = "long"\nfunctions = ["f"]\n[class.lines.g]\n"if (a)" = 2\n'
    assert explore_cover.read_list(text) == [
        Listed("long", "f"),
        Listed("long", "g", "if (a)", 2),
    ]
    with pytest.raises(ValueError, match="no reason"):
        explore_cover.read_list('[[class]]\nreason = " "\nfunctions = ["f"]\n')
    with pytest.raises(ValueError, match="listed twice: f"):
        explore_cover.read_list(text + '[[class]]\nreason = "r"\nfunctions = ["f"]\n')
    with pytest.raises(ValueError, match="listed twice: g: if"):
        explore_cover.read_list(text + '[[class]]\nreason = "r"\nfunctions = ["g"]\n')


def test_the_list_can_be_read() -> None:
    assert explore_cover.read_list(explore_cover.LIST.read_text())


def test_measure__a_search_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / explore_cover.PROGRAM
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho RPC 0 is executed twice; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(builds, "ensure", lambda _context, _name: tmp_path)
    with pytest.raises(builds.BuildError, match="executed twice"):
        explore_cover.measure(Context(False, []))


def test_gcov__says_more_of_files_that_never_ran() -> None:
    """gcov's complaint about a file without counts comes before its JSON, as a log has both."""
    text = 'a.gcda:cannot open data file, assuming not executed\n{"files": []}\n'
    assert explore_cover._json_of(text) == '{"files": []}'


def test_gcov__notes_of_a_source_that_has_moved(tmp_path: Path) -> None:
    branch = {"count": 1}
    said = {
        "file": "/x/engine/homa/homa_gone.c",
        "lines": [{"line_number": 1, "branches": [branch]}],
    }
    lines: dict = {}
    explore_cover.add_gcov({"files": [said]}, lines, tmp_path)
    assert not lines
    (tmp_path / "engine/homa").mkdir(parents=True)
    (tmp_path / "engine/homa/homa_gone.c").write_text("x\n")
    explore_cover.add_gcov({"files": [said]}, lines, tmp_path)
    assert len(lines) == 1


def test_gone__lines_and_functions_that_are_in_no_source(tmp_path: Path) -> None:
    (tmp_path / "engine/homa").mkdir(parents=True)
    (tmp_path / "engine/homa/a.c").write_text(
        "void one(int x);\nstatic int\ntwo(void)\n{\n\tif (z)\n}\n"
        "void one(int x)\n{\n\tif  (x)\n\t\treturn;\n}\n\tif (y)\n"
    )
    (tmp_path / "engine/homa/b.h").write_text("int three(int x);\n")
    found = explore_cover.gone(
        [
            Listed("r", "one"),
            Listed("r", "one", "if (x)", 1),
            Listed("r", "two", "if (z)", 1),
            Listed("r", "one", "if (y)", 1),
            Listed("r", "three"),
        ],
        tmp_path,
    )
    assert found == [
        "one: if (y): the function has no such line",
        "three(): there is no such function",
    ]


def test_list__names_lines_that_are_there() -> None:
    """The search with counted branches takes minutes and is run seldom; this part of it is not."""
    assert not explore_cover.gone(explore_cover.read_list(explore_cover.LIST.read_text()))
