# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The mutants of tests/explore/mutants fit today's engine, and `./homa mutants` tells what catches them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.mutants import catchers, patches, run, table
from lab.mutants.patches import Mutant, PatchError
from lab.paths import ROOT

NAMES = sorted(p.stem for p in patches.FOLDER.glob("*.patch"))
INCLUDES = [f"-I{folder}" for folder in ("plat/user", "base", "link", "wire/homa", "homa")]
FLAGS = ("-std=gnu11", "-ffreestanding", "-fsyntax-only", "-Wall", "-Wextra", "-Werror")


def test_mutants__are_thirty_and_have_the_five_that_were_found() -> None:
    known = [m.named for m in patches.read_all()]
    assert len(known) >= 30
    assert set(patches.NAMED) <= set(known)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the engine's folder."""
    root = tmp_path_factory.mktemp("mutants")
    shutil.copytree(ROOT / "engine", root / "engine")
    return root


@pytest.mark.parametrize("name", NAMES)
def test_mutant__applies_and_compiles(name: str, engine: Path) -> None:
    """Whoever changes the engine changes the patches that no longer fit."""
    mutant = patches.read(patches.FOLDER / f"{name}.patch")
    changed = mutant.apply()
    for path, text in changed.items():
        assert text != (ROOT / path).read_text()
        (engine / path).write_text(text)
    try:
        files = list(changed)
        if any(path.endswith(".h") for path in files):
            # Of those that include it, many: any will do to see that it is C.
            files = [f for f in files if f.endswith(".c")] + ["engine/homa/homa_rx.c"]
        done = subprocess.run(
            ["gcc", *FLAGS, *INCLUDES, *(f.removeprefix("engine/") for f in files)],
            cwd=engine / "engine",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    finally:
        for path in changed:
            shutil.copy(ROOT / path, engine / path)


def _rows() -> dict[str, list[str]]:
    page = table.PAGE.read_text().partition(table.BEGIN)[2].partition(table.END)[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.M)
    return {name: rest.split(" | ") for name, rest in rows}


def test_table__has_a_row_for_each_mutant_with_its_fault() -> None:
    rows = _rows()
    assert sorted(rows) == NAMES
    for mutant in patches.read_all():
        assert rows[mutant.name][0].startswith(mutant.fault)


def test_table__names_tests_that_exist() -> None:
    """What it says of a test is `PROGRAM: CASE`."""
    folders = [ROOT / "tests" / folder for folder in ("unit", "pair")]
    sources = "".join(path.read_text() for folder in folders for path in folder.glob("*.c"))
    cases = re.findall(r"`\w+: (\w+__\w+)`", table.PAGE.read_text())
    assert len(cases) >= 30
    known = set(re.findall(r"\w+__\w+", sources))
    assert sorted(set(cases) - known) == []


# ---- reading and applying ----

HEAD = "Fault: A number is\n  wrong.\nPromise: Numbers are right.\n\n"
DIFF = "--- a/engine/x.h\n+++ b/engine/x.h\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n"


def _patch(folder: Path, text: str, name: str = "m") -> Path:
    path = folder / f"{name}.patch"
    path.write_text(text)
    return path


def test_read__says_what_the_patch_says(tmp_path: Path) -> None:
    mutant = patches.read(_patch(tmp_path, HEAD + DIFF))
    assert (mutant.name, mutant.fault, mutant.promise, mutant.named) == (
        "m",
        "A number is wrong.",
        "Numbers are right.",
        "",
    )


@pytest.mark.parametrize(
    "text",
    [
        DIFF,
        HEAD,
        HEAD.replace("Promise: Numbers are right.\n", "") + DIFF,
        HEAD.replace("wrong.", "wrong") + DIFF,
        HEAD + "Named: something else\n" + DIFF,
        HEAD + "a remark\n" + DIFF,
        HEAD + DIFF.replace("engine/", "tests/"),
        HEAD + DIFF.replace("+C", "+c"),
        HEAD + DIFF.replace("+C", "*C"),
        HEAD + DIFF[: DIFF.index("@@")],
    ],
)
def test_read__refuses_what_is_no_mutant(text: str, tmp_path: Path) -> None:
    with pytest.raises(PatchError, match="m.patch"):
        patches.read(_patch(tmp_path, text))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a b c d e", "a b C d e"),
        ("z z a b c d", "z z a b C d"),
        ("b c d x x x b c d", "b C d x x x b c d"),
    ],
)
def test_apply__finds_lines_that_have_moved(before: str, after: str, tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine/x.h").write_text(before.replace(" ", "\n") + "\n")
    mutant = patches.read(_patch(tmp_path, HEAD + DIFF))
    assert mutant.apply(tmp_path) == {"engine/x.h": after.replace(" ", "\n") + "\n"}


@pytest.mark.parametrize("text", ["b\nx\nd\n", "b\nc\n\nd\n", None])
def test_apply__refuses_what_does_not_fit(text: str | None, tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    if text:
        (tmp_path / "engine/x.h").write_text(text)
    mutant = patches.read(_patch(tmp_path, HEAD + DIFF))
    with pytest.raises(PatchError, match="m.patch: engine/x.h"):
        mutant.apply(tmp_path)


# ---- the runner, with a tree of two programs ----

MESON = """\
project('fake', 'c')
foreach name : ['pair_a', 'pair_b']
  executable(name, 'tests' / name + '.c', include_directories: 'engine')
endforeach
"""
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "x.h"
int main(void)
{
	FILE *log = fopen(LOG, "a");

	fprintf(log, "%s\\n", NAME);
	fclose(log);
	if (VALUE == SEEN)
		printf("not ok 1 - value__is_one\\nmore\\n");
	fflush(stdout);
	if (VALUE == 7)
		abort();
	while (VALUE == 8)
		pause();
	return VALUE == SEEN || VALUE == 9;
}
"""
PAIR = catchers.Catcher("pair", ("pair_*",), ("tests",))


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "root"
    (root / "engine").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "meson.build").write_text(MESON)
    (root / "engine/x.h").write_text("#define VALUE 1\n")
    (tmp_path / "log").touch()
    for name, seen in (("pair_a", 5), ("pair_b", 6)):
        defines = f'#define NAME "{name}"\n#define SEEN {seen}\n#define LOG "{tmp_path}/log"\n'
        (root / "tests" / f"{name}.c").write_text(defines + PROGRAM)
    monkeypatch.setattr(run, "LEAST_S", 1)
    monkeypatch.setattr("lab.mutants.tree.OPTIONS", ())
    return root


@pytest.fixture
def mutant(tmp_path: Path) -> Callable[[str], Mutant]:
    def make(value: str) -> Mutant:
        diff = "--- a/engine/x.h\n+++ b/engine/x.h\n@@ -1 +1 @@\n-#define VALUE 1\n"
        return patches.read(_patch(tmp_path, f"{HEAD}{diff}+#define VALUE {value}\n", f"m{value}"))

    return make


def _started(tree: Path) -> list[str]:
    log = tree.parent / "log"
    lines = log.read_text().split()
    log.write_text("")
    return lines


def test_run__names_the_first_test_that_notices(
    tree: Path, mutant: Callable[[str], Mutant]
) -> None:
    mutants = [mutant(value) for value in ("2", "5", "6", "7", "8", "9")]
    looked = run.Run(tree.parent / "kept", 1, 2, lambda _: None, tree)
    found = {name: r.by for (name, _), r in looked.look(mutants, [PAIR]).items()}
    assert found.pop("m7").endswith("dies of SIGABRT")
    assert found.pop("m8").endswith("hangs")
    assert found.pop("m9").endswith("ends with status 1")
    assert found == {"m2": "", "m5": "pair_a: value__is_one", "m6": "pair_b: value__is_one"}


def test_run__goes_on_where_one_was_stopped(tree: Path, mutant: Callable[[str], Mutant]) -> None:
    def look(*values: str, again: bool = False) -> tuple[list[str], list[str]]:
        looked = run.Run(tree.parent / "kept", 1, 1, lambda _: None, tree)
        found = looked.look([mutant(v) for v in values], [PAIR], again)
        return [r.by for r in found.values()], _started(tree)

    both = ["pair_a", "pair_b"]
    by, started = look("2")
    assert (by, sorted(started)) == ([""], sorted(both * 2))
    assert look("2") == ([""], [])
    by, started = look("2", "5")
    assert by == ["", "pair_a: value__is_one"] and started[-1] == "pair_a"
    assert sorted(look("2", again=True)[1]) == both
    # Another engine: all of it again, the tree without a mutant first.
    (tree / "engine/x.h").write_text("#define VALUE 1\n/* changed */\n")
    assert sorted(look("2")[1]) == sorted(both * 2)


def test_run__a_new_program_is_asked_too(tree: Path, mutant: Callable[[str], Mutant]) -> None:
    """Also in a copy that was configured before there was one."""
    build = tree / "meson.build"
    build.write_text(MESON.replace(", 'pair_b'", ""))
    looked = run.Run(tree.parent / "kept", 1, 1, lambda _: None, tree)
    assert looked.look([mutant("6")], [PAIR])["m6", "pair"].by == ""
    build.write_text(MESON)
    (tree / "tests/new").touch()
    looked = run.Run(tree.parent / "kept", 1, 1, lambda _: None, tree)
    assert looked.look([mutant("6")], [PAIR])["m6", "pair"].by == "pair_b: value__is_one"


def test_run__the_original_comes_back_after_each(
    tree: Path, mutant: Callable[[str], Mutant]
) -> None:
    """A copy that has had one mutant has nothing of it left for the next."""
    (tree / "engine/y.h").write_text("#define SEEN_TOO 1\n")
    other = tree.parent / "other.patch"
    other.write_text(
        f"{HEAD}--- a/engine/y.h\n+++ b/engine/y.h\n@@ -1 +1 @@\n-#define SEEN_TOO 1\n+#define SEEN_TOO 2\n"
    )
    looked = run.Run(tree.parent / "kept", 1, 1, lambda _: None, tree)
    found = looked.look([mutant("5"), patches.read(other)], [PAIR])
    assert [r.by for r in found.values()] == ["pair_a: value__is_one", ""]


@pytest.mark.parametrize(
    ("value", "says"), [("", "m does not compile"), ("5", "without any mutant pair_a")]
)
def test_run__says_what_is_not_in_order(
    value: str, says: str, tree: Path, mutant: Callable[[str], Mutant]
) -> None:
    if value:
        (tree / "engine/x.h").write_text(
            f"#define VALUE 1\n\n#undef VALUE\n#define VALUE {value}\n"
        )
    looked = run.Run(tree.parent / "kept", 1, 1, lambda _: None, tree)
    with pytest.raises(LabError, match=says):
        looked.look([mutant("" if not value else "2")], [PAIR])


def test_run__a_timed_catcher_gets_its_time_and_no_more(
    tree: Path, mutant: Callable[[str], Mutant]
) -> None:
    """To go on for as long as it was given is what it is for, and no hang."""
    words = ("--seconds", "{seconds}")
    timed = catchers.Catcher("explore", ("pair_a",), ("tests",), words, timed=True)
    looked = run.Run(tree.parent / "kept", 1, 1, lambda _: None, tree)
    assert [r.by for r in looked.look([mutant("8")], [timed]).values()] == [""]
    assert [r.by for r in looked.look([mutant("5")], [timed]).values()] == ["pair_a: value__is_one"]


def test_table__is_written_between_its_marks(
    tmp_path: Path, mutant: Callable[[str], Mutant]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    found = {
        ("m5", "pair"): run.Result("pair_a: value__is_one", 1),
        ("m6", "pair"): run.Result("", 1),
    }
    table.write(table.markdown([mutant("5"), mutant("6")], ["pair", "explore"], found), page)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "| `m5` | A number is wrong. | `pair_a: value__is_one` | – |" in text
    assert "| `m6` | A number is wrong. | nothing | – |" in text
    assert "caught: pair 1 of 2, explore 0 of 0." in text
    page.write_text("no marks\n")
    with pytest.raises(LabError, match="lacks the lines"):
        table.write("x", page)


def test_as_json__counts_what_was_looked_at(mutant: Callable[[str], Mutant]) -> None:
    """A catcher that has seen none has no share: 0 would be one."""
    found = {
        ("m5", "pair"): run.Result("pair_a: value__is_one", 1),
        ("m6", "pair"): run.Result("", 1),
    }
    said = table.as_json([mutant("5"), mutant("6"), mutant("7")], ["pair", "explore"], found)
    assert said["caught_percent"] == {"pair": 50.0}
    assert said["results"][1] == {"mutant": "m6", "catcher": "pair", "by": "", "seconds": 1}
