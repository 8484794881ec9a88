# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Circles of files by call: a file depends on each file whose functions it names. A
reader of one file in a circle has to read all of them, so circles.toml says for each
folder how many files are in its largest circle and in circles at all, and these
numbers may only shrink.

What counts: a function named in a function's body, in a macro or in a table, called
or handed on; the name alone, so a pointer to a function hides nothing. Both sides of
an #if. HOMA_PL_REAL(close) names the C library's function, not the preload library's hook. A name belongs to the file itself if it has a function of that name, else to
the one file of the folder that has it and does not say static. An inline function of
a header is everybody's.

Inline functions and macros of a header X.h belong to X.c where there is one in the
same folder, because the two are one concept; else the header counts as a file."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

from source import Tree
from text import functions

RATCHET = "tests/purity/circles.toml"
# Each folder here, and each folder in these, has a line of its own.
WHOLE = ("engine", "nic", "sim")
PARTED = ("host", "lib")

_WORD = re.compile(r"(?<![\w.])(?<!->)([A-Za-z_]\w*)")
# struct nic_tx is not the function nic_tx().
_TAG = re.compile(r"\b(struct|union|enum)(\s+)\w+")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(((?:.*\\\n)*.*)$", re.M)
# The C library's function of that name, not the hook that stands before it; and their list.
_REAL = re.compile(r"\bHOMA_PL_REAL\(\w+\)")
_REAL_LIST = "HOMA_PL_FUNCTIONS"
_DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.M)
_PROTOTYPE = re.compile(r"^[A-Za-z_][^;{}=]*\([^;{}=]*\)[^;{}=]*;", re.M)


class File:
    """What one file defines and what it names."""

    def __init__(self, code: str, header: bool) -> None:
        self.shared: set[str] = set()
        self.private: set[str] = set()
        self.named: set[str] = set()
        code = _REAL.sub("HOMA_PL_REAL()", _TAG.sub(r"\1\2_", code))
        for macro in _MACRO.finditer(code):
            self.shared.add(macro[1])
            if macro[1] != _REAL_LIST:
                self.named |= set(_WORD.findall(macro[2]))
        code = _DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code)
        lines = code.split("\n")
        outside, after = [], 0
        for name, brace, length in functions(code):
            head = _head(lines, brace)
            kept = r"\bstatic\b(?!.*\binline\b)" if header else r"\bstatic\b"
            own = self.private if re.search(kept, head) else self.shared
            own.add(name)
            end = brace + length - 1
            self.named |= set(_WORD.findall("\n".join(lines[brace - 1 : end])))
            outside += lines[after : brace - 1 - len(head.splitlines())]
            after = end
        outside += lines[after:]
        self.named |= set(_WORD.findall(_PROTOTYPE.sub("", "\n".join(outside))))


def _head(lines: list[str], brace: int) -> str:
    """What stands before a function's brace: its type, name and parameters."""
    head: list[str] = []
    for line in reversed(lines[: brace - 1]):
        if not line.strip() or line.startswith(("}", "#")) or line.rstrip().endswith(";"):
            break
        head.insert(0, line)
    return "\n".join(head)


def _node(path: Path, files: set[Path]) -> Path:
    """The source that a header stands for: X.c for X.h, and for homa_X.h if there is no other."""
    if path.suffix != ".h":
        return path
    source = path.with_suffix(".c")
    short = source.with_name(source.name.removeprefix("homa_"))
    return next((f for f in (source, short) if f in files), path)


def graph(tree: Tree, folder: str) -> dict[Path, dict[Path, set[str]]]:
    """For each file of a folder the files that it depends on, and by which names."""
    files = {f for f in tree.c_files() if folder in _folders(tree, f)}
    read = {f: File(tree.code(f), f.suffix == ".h") for f in files}
    owners: dict[str, set[Path]] = defaultdict(set)
    for path, file in read.items():
        for name in file.shared:
            owners[name].add(_node(path, files))
    edges: dict[Path, dict[Path, set[str]]] = {_node(f, files): defaultdict(set) for f in files}
    for path, file in read.items():
        me = _node(path, files)
        for name in file.named - file.private - file.shared:
            # A seam (plat) or a double defines the same name more than once.
            for target in owners.get(name, set()) - {me}:
                if len(owners[name]) == 1 or target.parent == me.parent:
                    edges[me][target].add(name)
    return edges


def _folders(tree: Tree, path: Path) -> set[str]:
    return {
        p.relative_to(tree.root).as_posix() for p in path.parents if p.is_relative_to(tree.root)
    }


def circles(edges: dict[Path, dict[Path, set[str]]]) -> list[list[Path]]:
    """The strongly connected components of more than one file, largest first (Tarjan)."""
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    found: list[list[Path]] = []

    def visit(node: Path) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            part = [stack.pop()]
            while part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(found, key=lambda part: (-len(part), part))


def folders(tree: Tree) -> list[str]:
    """The folders whose circles are counted, as the tree has them."""
    found = set()
    for path in tree.c_files():
        parts = path.relative_to(tree.root).parts
        if parts[0] in WHOLE:
            found.add(parts[0])
        elif parts[0] in PARTED:
            found.add("/".join(parts[:2]) if len(parts) > 2 else parts[0])
    return sorted(found)


def describe(tree: Tree, edges: dict[Path, dict[Path, set[str]]], part: list[Path]) -> list[str]:
    lines = []
    for path in part:
        for target in sorted(set(edges[path]) & set(part)):
            names = ", ".join(sorted(edges[path][target]))
            lines.append(f"  {tree.name(path)} -> {target.name}: {names}")
    return lines


def check_calls(tree: Tree) -> list[str]:
    """No folder has larger circles than circles.toml says, nor smaller ones unsaid."""
    path = tree.root / RATCHET
    said = tomllib.loads(path.read_text()) if path.exists() else {}
    problems = []
    for folder in sorted(set(said) - set(folders(tree))):
        problems.append(f"{RATCHET}: there is no folder {folder}")
    for folder in folders(tree):
        # A folder's files that stand beside the folders in it.
        edges = graph(tree, folder)
        if folder in PARTED:
            edges = {f: t for f, t in edges.items() if f.parent == tree.root / folder}
            edges = {f: {t: n for t, n in to.items() if t in edges} for f, to in edges.items()}
        parts = circles(edges)
        is_now = {"largest": len(parts[0]) if parts else 0, "files": sum(map(len, parts))}
        limit = said.get(folder, {"largest": 0, "files": 0})
        if any(is_now[k] > limit[k] for k in is_now):
            problems.append(
                f"{folder}: {is_now['largest']} files in the largest circle of calls and"
                f" {is_now['files']} in all circles; {RATCHET} says"
                f" {limit['largest']} and {limit['files']}"
            )
            for part in parts:
                problems += describe(tree, edges, part)
        elif is_now != limit:
            problems.append(
                f"{folder}: circles of calls have shrunk; write largest = {is_now['largest']},"
                f" files = {is_now['files']} into {RATCHET}"
            )
    return problems
