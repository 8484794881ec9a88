# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The part of the formatting that needs no formatter, and so is the same with every
version of one: licence line, tabs, width, and nothing that only one machine has."""

from __future__ import annotations

import os
import re
from pathlib import Path

from source import SKIPPED_FOLDERS, Tree

MAX_COLUMNS = 100
MAX_PAGE_COLUMNS = 120
LICENSE = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later"
CODE_SUFFIXES = (".c", ".h", ".def", ".py", ".sh", ".map")
TEXT_SUFFIXES = (*CODE_SUFFIXES, ".md", ".build", ".toml", ".txt", ".json")

# Homes, checkouts and scratch places of whoever wrote the line.
_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home)/\w+")


def text_files(tree: Tree, suffixes: tuple[str, ...]) -> list[Path]:
    found = []
    for folder, subfolders, names in os.walk(tree.root):
        subfolders[:] = [
            s for s in subfolders if s not in SKIPPED_FOLDERS and not s.startswith((".", "build"))
        ]
        found += [Path(folder, n) for n in names if n.endswith(suffixes)]
    return sorted(found)


def check_license(tree: Tree) -> list[str]:
    """In the first three lines: an interpreter line may come before it."""
    return [
        f"{tree.name(path)}: no '{LICENSE}' in its first lines"
        for path in text_files(tree, CODE_SUFFIXES)
        if LICENSE not in "\n".join(tree.text(path).splitlines()[:3]) and tree.text(path).strip()
    ]


def check_whitespace(tree: Tree) -> list[str]:
    problems = []
    for path in text_files(tree, TEXT_SUFFIXES):
        lines = tree.text(path).split("\n")
        if lines[-1]:
            problems.append(f"{tree.name(path)}: no newline at the end")
        for number, line in enumerate(lines, 1):
            if line != line.rstrip() and not path.name.endswith(".md"):
                problems.append(f"{tree.name(path)}:{number}: trailing white space")
    return problems


def check_c_layout(tree: Tree) -> list[str]:
    """Tabs indent, and no line is wider than a reader's window except for a message,
    which stays whole so that it can be searched for."""
    problems = []
    for path in tree.c_files():
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            where = f"{tree.name(path)}:{number}"
            # clang-format fills a line of a macro that is empty with spaces.
            if line.startswith("        ") and line.strip() != "\\":
                problems.append(f"{where}: indented with spaces")
            if len(line.expandtabs(8)) > MAX_COLUMNS and '"' not in line:
                problems.append(f"{where}: wider than {MAX_COLUMNS} columns")
    return problems


def check_pages_width(tree: Tree) -> list[str]:
    """A line of prose fits a window; tables, code and links to pictures need not."""
    problems = []
    for path in text_files(tree, (".md",)):
        fenced = False
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            fenced ^= line.lstrip().startswith("```")
            prose = not fenced and not line.startswith(("    ", "|", "![", "<"))
            if prose and len(line) > MAX_PAGE_COLUMNS:
                problems.append(
                    f"{tree.name(path)}:{number}: wider than {MAX_PAGE_COLUMNS} columns"
                )
    return problems


def check_no_machine_paths(tree: Tree) -> list[str]:
    problems = []
    for path in text_files(tree, TEXT_SUFFIXES):
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            match = _MACHINE_PATH.search(line)
            if match:
                problems.append(
                    f"{tree.name(path)}:{number}: {match.group(0)} exists on one machine only"
                )
    return problems
