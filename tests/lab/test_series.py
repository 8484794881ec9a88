# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa kernel series`: which file is in which patch, and mails that apply. That each state
builds is tests/vm/test_series.py's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.series import build, layout, mails, style, table

AUTHOR = "A Tester <tester@localhost>"
BASE = {
    "net/Makefile": "obj-y := core/\n",
    "net/Kconfig": 'source "net/sctp/Kconfig"\nsource "net/rds/Kconfig"\n',
    "tools/testing/selftests/Makefile": "TARGETS += net\nTARGETS += net/mptcp\n",
    "MAINTAINERS": "HID CORE LAYER\nM:\ta\n\nHOST AP DRIVER\nM:\tb\n\nHP BIOSCFG\nM:\tc\n",
}


def states() -> list[dict[str, str]]:
    return layout.states(table.read().patches, BASE, AUTHOR)


def tree_with(tmp_path: Path, *added: str) -> Path:
    """A copy of the module's sources with empty files added."""
    for name in [*table.module_files(), *added]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_table__has_every_file_of_the_module_once() -> None:
    rows = table.read()
    files = [name for patch in rows.patches for name in patch.all_files()]
    assert len(files) == len(set(files))
    assert len(rows.patches) <= 15
    assert "host/kernel/module.c" in files and "engine/homa/homa_rx.c" in files


@pytest.mark.parametrize("name", ["host/kernel/new.c", "engine/homa/new.c", "abi/new.h"])
def test_table__a_file_that_is_in_no_patch(tmp_path: Path, name: str) -> None:
    root = tree_with(tmp_path)
    table.read(root)
    with pytest.raises(LabError, match=f"{name} is in no patch"):
        table.read(tree_with(tmp_path, name))


def changed(old: str, new: str) -> str:
    text = Path(table.__file__).with_name("series.toml").read_text()
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"host/kernel/gro.c"', '"host/kernel/gro.c", "host/kernel/gso.c"', "gso.c is in patch"),
        ('"host/kernel/gro.c"', '"host/kernel/gra.c"', "there is no file host/kernel/gra.c"),
        ("module = true\n", "", "exactly one patch makes the module"),
        ('subject = "net: homa: sockets"', f'subject = "{"x" * 60}"', "subject is too long"),
    ],
)
def test_table__mistakes_are_named(old: str, new: str, complaint: str) -> None:
    with pytest.raises(LabError, match=re.escape(complaint)):
        table.read(text=changed(old, new))


def test_table__options_only_of_a_module() -> None:
    rows = table.read()
    first = next(i for i, patch in enumerate(rows.patches) if patch.options)
    linked = next(i for i, patch in enumerate(rows.patches) if patch.module)
    assert linked < first
    with pytest.raises(LabError, match="has an option before there is a module"):
        text = changed("module = true\n", "").replace(
            'subject = "net: homa: tests"',
            'module = true\nsubject = "net: homa: tests"',
        )
        table.read(text=text)


def test_state__includes_nothing_that_comes_later() -> None:
    for number, state in enumerate(states(), 1):
        ours = {Path(name).name for name in state if name.startswith(layout.MODULE)}
        uapi = {Path(name).name for name in state if name.startswith(layout.UAPI)}
        for name, text in state.items():
            for header in re.findall(r'^#include "(?:.*/)?([\w.]+)"', text, re.M):
                assert header in ours, f"patch {number}: {name} includes {header}"
            for header in re.findall(r"^#include <linux/(homa_\w+\.h)>", text, re.M):
                assert header in uapi, f"patch {number}: {name} includes {header}"


def test_state__makefile_has_each_object_once() -> None:
    for state in states():
        sources = {
            name[len(layout.MODULE) + 1 : -2]
            for name in state
            if name.startswith(layout.MODULE) and name.endswith(".c")
        }
        makefile = state[f"{layout.MODULE}/Makefile"]
        objects = re.findall(r"^(?:homa|homa_diag|always)-\S+ \+= (\S+)\.o$", makefile, re.M)
        assert sorted(objects) == sorted(sources)


def test_state__every_option_is_in_kconfig_and_used() -> None:
    last = states()[-1]
    kconfig = last[f"{layout.MODULE}/Kconfig"]
    names = re.findall(r"^config (HOMA_\w+)$", kconfig, re.M)
    assert "HOMA_GSO" in names
    for name in names:
        assert f"-$(CONFIG_{name}) += " in last[f"{layout.MODULE}/Makefile"]
    used = {
        o for text in last.values() for o in re.findall(r"IS_ENABLED\(CONFIG_(HOMA_\w+)\)", text)
    }
    # The stream sockets are left out, their option is not.
    assert used - {"HOMA_STREAM"} <= set(names)


def test_hooks__the_kernels_files_lead_to_the_module() -> None:
    first = states()[0]
    assert first["net/Makefile"].endswith("obj-$(CONFIG_HOMA)\t\t+= homa/\n")
    assert 'source "net/homa/Kconfig"\nsource "net/rds/Kconfig"\n' in first["net/Kconfig"]
    targets = states()[-1]["tools/testing/selftests/Makefile"]
    assert targets == "TARGETS += net\nTARGETS += net/homa\nTARGETS += net/mptcp\n"
    headings = re.findall(r"^(\S.*)\n[M]:", first["MAINTAINERS"], re.M)
    assert headings == sorted(headings) and "HOMA TRANSPORT PROTOCOL" in headings


def test_hooks__a_tree_without_the_place_for_them() -> None:
    with pytest.raises(LabError, match="has no line like"):
        layout.states(table.read().patches, {"net/Kconfig": "nothing\n"}, AUTHOR)


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_mails__apply_in_order_and_are_the_same_each_time(tmp_path: Path) -> None:
    rows, made = table.read(), states()
    first = mails.write(rows, made, BASE, tmp_path / "a", AUTHOR)
    again = mails.write(rows, made, BASE, tmp_path / "b", AUTHOR)
    assert [m.read_bytes() for m in first] == [m.read_bytes() for m in again]
    assert len(first) == 1 + len(rows.patches)
    cover = first[0].read_text()
    assert "***" not in cover and rows.subject in cover
    assert "Signed-off-by" not in first[1].read_text()

    tree = tmp_path / "tree"
    for name, text in BASE.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-q", "-m", "base"],
        ["am", "-q", *(str(m) for m in first[1:])],
    ):
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *words]
        subprocess.run(git, cwd=tree, check=True, timeout=120)
    for name, text in made[-1].items():
        assert (tree / name).read_text() == text, name


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_mails__what_is_not_of_a_series_stays(tmp_path: Path) -> None:
    (tmp_path / "0001-mine.patch").write_text("somebody's work\n")
    with pytest.raises(LabError, match="remove it first"):
        mails.write(table.read(), states(), BASE, tmp_path, AUTHOR)
    assert (tmp_path / "0001-mine.patch").read_text() == "somebody's work\n"


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_mails__sign_only_if_told(tmp_path: Path) -> None:
    made = mails.write(table.read(), states(), BASE, tmp_path, AUTHOR, signed=True)
    assert all(f"Signed-off-by: {AUTHOR}\n" in m.read_text() for m in made[1:])


def test_comments__end_on_a_line_of_their_own() -> None:
    text = "/* one */\n\t/* two\n\t * lines */\nint a; /* three\n\t* four */ int b;\n/*\n * five\n */\n"
    assert style.comments(text) == (
        "/* one */\n\t/* two\n\t * lines\n\t */\nint a; /* three\n\t* four */ int b;\n/*\n * five\n */\n"
    )


def test_comments__nothing_else_changes() -> None:
    for name in table.module_files():
        text = (table.ROOT / name).read_text()
        assert "".join(style.comments(text).split()) == "".join(text.split()), name


@pytest.mark.skipif(not shutil.which("perl"), reason="perl is not installed")
def test_checkpatch__is_counted_by_type(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/checkpatch.pl").write_text(
        'print "$ARGV[-1]:7: CHECK:SPACING: a\\n$ARGV[-1]:9: ERROR:SPACING: b\\n"; exit 1;\n'
    )
    counts, lines = build.checkpatch(
        tmp_path, [tmp_path / "0001-a.patch", tmp_path / "0002-b.patch"]
    )
    assert counts == {"CHECK SPACING": 2, "ERROR SPACING": 2}
    assert lines[0].startswith("0001-a.patch:7: ")
    with pytest.raises(LabError, match="has no scripts/checkpatch.pl"):
        build.checkpatch(tmp_path / "scripts", [])
