# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Pages of the handbook and the tree: a file that a page names is there, and the table of
folders is complete."""

from __future__ import annotations

import re

from source import Tree
from style import text_files

_NAMED_FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:c|h|py|def|sh))`")


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
