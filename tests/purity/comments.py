# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Names in comments that are not there lead a reader nowhere: functions that were renamed,
fields that moved, files that are gone.

A comment's names are those that this project gives (homa_..., tas_...), @words, which stand
for parameters and fields, and files of C. A name that ends with _ is the beginning of several."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from source import COMMENT_OR_STRING, Tree, strip_comments
from style import text_files

_OURS = re.compile(
    r"\b((?:homa|homad|homak|nic|tas|sim|HOMA|HOMAD|HOMAK|NIC|TAS|SIM)_\w*[A-Za-z0-9])\b"
    r"(?!\.[ch]\b)"
)
# @NAME is an abstract socket.
_MEMBER = re.compile(r"(?<![\w.])@([a-z]\w*)")
_FILE = re.compile(r"(?<![\w.<-])((?:[a-z][\w-]*/)*[a-z]\w*\.[ch])\b(?!\.?\w)")
# The first words of kernel-doc, and the declaration that follows it.
_HEAD = re.compile(
    r"/\*\*[ \t]*\n?[ \t]*\*?[ \t]*(?:struct |enum |union )?(\w+)(?:\(\))?(?:, \w+\(\))* - "
    r"(?:(?!\*/).)*\*/\s*((?:(?!/\*).){0,600})",
    re.DOTALL,
)
_WORD = re.compile(r"\w+")


def _comments(tree: Tree, path: Path) -> Iterator[tuple[int, str]]:
    text = tree.text(path)
    for match in COMMENT_OR_STRING.finditer(text):
        if match[0].startswith("/"):
            yield match.start(), match[0]


def _place(tree: Tree, path: Path, position: int) -> str:
    return f"{tree.name(path)}:{tree.text(path).count(chr(10), 0, position) + 1}"


def _words(tree: Tree) -> dict[Path, set[str]]:
    return {path: set(_WORD.findall(tree.code(path))) for path in tree.c_files()}


def _elsewhere(tree: Tree) -> set[str]:
    """Names that other languages, lists and builds give; and those in strings, for instance of
    environment variables."""
    found: set[str] = set()
    for path in tree.c_files():
        found |= set(_WORD.findall(strip_comments(tree.text(path), strings_too=False)))
    for path in text_files(tree, (".def", ".py", ".build", ".map", ".sh", ".lua", ".sv", ".cpp")):
        found |= set(_WORD.findall(tree.text(path)))
    return found


def check_names(tree: Tree) -> list[str]:
    """A name of ours in a comment is one of the code, and a file is there or is the system's."""
    known = _elsewhere(tree).union(*_words(tree).values())
    files = {f"/{tree.name(path)}" for path in tree.c_files()}
    system = {what for path in tree.c_files() for _, what, _ in tree.include_lines(path)}
    problems = []
    for path in tree.c_files():
        for start, comment in _comments(tree, path):
            for match in _OURS.finditer(comment):
                if match[1] not in known:
                    where = _place(tree, path, start + match.start())
                    problems.append(f"{where}: there is no {match[1]}")
            for match in _FILE.finditer(comment):
                ends = f"/{match[1]}"
                if not any(f.endswith(ends) for f in files) and not any(
                    f"/{what}".endswith(ends) for what in system
                ):
                    where = _place(tree, path, start + match.start())
                    problems.append(f"{where}: there is no file {match[1]}")
    return problems


def check_members(tree: Tree) -> list[str]:
    """@word is a word of the file's code, or of a header that the file includes."""
    words = _words(tree)
    names = defaultdict(list)
    for path in words:
        names[path.name].append(path)
    problems = []
    for path in words:
        near: set[str] | None = None
        for start, comment in _comments(tree, path):
            for match in _MEMBER.finditer(comment):
                if match[1] in words[path]:
                    continue
                if near is None:
                    near = set().union(*(words[p] for p in _included(tree, path, names)))
                if match[1] not in near:
                    where = _place(tree, path, start + match.start())
                    problems.append(f"{where}: there is no {match[0]} here")
    return problems


def _included(tree: Tree, path: Path, names: dict[str, list[Path]]) -> set[Path]:
    seen, todo = {path}, [path]
    while todo:
        for _, what, _ in tree.include_lines(todo.pop()):
            new = set(names.get(Path(what).name, [])) - seen
            seen |= new
            todo += new
    return seen


def check_heads(tree: Tree) -> list[str]:
    """Kernel-doc names what is declared behind it."""
    problems = []
    for path in tree.c_files():
        for match in _HEAD.finditer(tree.text(path)):
            if match[1] not in _WORD.findall(match[2]):
                where = _place(tree, path, match.start())
                problems.append(f"{where}: the comment is of {match[1]}, which is not behind it")
    return problems
