# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Pages of the handbook and the tree: a file that a page names is there, and tables of folders
and files are complete."""

from __future__ import annotations

import re
from dataclasses import dataclass

from source import Tree
from style import text_files

_NAMED_FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:c|h|py|def|sh))`")


@dataclass(frozen=True)
class Table:
    """A table of a page whose rows name, in their first cell, all of a folder's `glob`."""

    page: str
    heading: str  # of the section with the table; the table is the first that has `first`
    first: str  # the table's first heading cell
    folder: str
    glob: str  # a trailing / means folders
    others: frozenset[str] = frozenset()  # rows about what stands elsewhere


TABLES = (
    Table("docs/testing.md", "# Testing", "suite", "tests", "*/", frozenset({"hw"})),
    Table("docs/testing.md", "## Pair tests", "file", "tests/pair", "test_*.c"),
    Table(
        "docs/architecture.md",
        "## The engine",
        "file",
        "engine/homa",
        "*.c",
        frozenset({"homa_share.h"}),
    ),
    Table("docs/tcp.md", "## The engine", "file", "engine/tcp", "*.c"),
)


def check_pages(tree: Tree) -> list[str]:
    """Pages name files as `folder/file.c` or `file.c`."""
    there = {f"/{tree.name(p)}" for p in text_files(tree, (".c", ".h", ".py", ".def", ".sh"))}
    problems = []
    for page in text_files(tree, (".md",)):
        for number, line in enumerate(tree.text(page).split("\n"), 1):
            for name in _NAMED_FILE.findall(line):
                if not any(known.endswith(f"/{name}") for known in there):
                    problems.append(f"{tree.name(page)}:{number}: there is no {name}")
    return problems


def check_folders(tree: Tree) -> list[str]:
    """The table of folders in docs/architecture.md and the folders that there are."""
    page = tree.root / "docs/architecture.md"
    if not page.exists():
        return []
    table = tree.text(page).partition("## Folders")[2].partition("\n## ")[0]
    first = " ".join(re.findall(r"^\| (.*?) \|", table, re.M))
    named = {n for entry in re.findall(r"`([\w./{},-]+)/`", first) for n in _braces(entry)}
    problems = [
        f"docs/architecture.md: there is no folder {n}"
        for n in sorted(named)
        if not (tree.root / n).is_dir()
    ]
    tops = {
        tree.name(p).split("/")[0] for p in text_files(tree, (".c", ".h", ".py", ".md", ".lua"))
    }
    tops = {t for t in tops if (tree.root / t).is_dir()}
    missing = sorted(tops - {n.split("/")[0] for n in named})
    return problems + [f"docs/architecture.md: the table of folders lacks {n}/" for n in missing]


def _braces(entry: str) -> list[str]:
    """engine/plat/{user,kernel} is two folders."""
    head, _, rest = entry.partition("{")
    choices, _, tail = rest.partition("}")
    return [head + choice + tail for choice in choices.split(",")] if rest else [entry]


def check_tables(tree: Tree) -> list[str]:
    """Each table of TABLES names what is in its folder, and nothing else."""
    problems = []
    for table in TABLES:
        page = tree.root / table.page
        if not page.exists():
            continue
        where = f"{table.page}: the table of {table.folder}"
        named = _first_cells(tree.text(page), table)
        there = _entries(tree, table)
        problems += [f"{where} lacks {n}" for n in sorted(there - named)]
        problems += [
            f"{where} names {n}, which is not there" for n in sorted(named - there - table.others)
        ]
    return problems


def _first_cells(text: str, table: Table) -> set[str]:
    section = ("\n" + text).partition(f"\n{table.heading}")[2]
    lines = section.partition(f"\n| {table.first} |")[2].split("\n")[2:]
    rows = lines[: _end_of_table(lines)]
    return {n for row in rows for n in re.findall(r"`([\w.-]+)`", row.split(" | ")[0])}


def _end_of_table(lines: list[str]) -> int:
    return next((n for n, line in enumerate(lines) if not line.startswith("|")), len(lines))


def _entries(tree: Tree, table: Table) -> set[str]:
    """Folders of files that Python left behind are not the tree's."""
    found = (tree.root / table.folder).glob(table.glob.rstrip("/"))
    if table.glob.endswith("/"):
        return {p.name for p in found if p.is_dir() and not p.name.startswith(("_", "."))}
    return {p.name for p in found}
