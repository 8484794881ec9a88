# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Fields that nobody explained. Every field of a struct or union has a word of comment: one on
its line, one directly above its declaration, or its @name in the comment above the struct or in
one inside it. A comment speaks of one declaration (`u32 num, max;` is one); one that speaks of
several names the others by @name.

And every struct of a header says who writes it, because that is what a reader cannot see at the
field: "Written by: ..." or "Guarded by: ..." above it, in it, or once at the top of the header.

What is not done yet is counted in fields.toml by file; these numbers may only shrink."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from source import COMMENT_OR_STRING, Tree

RATCHET = "tests/purity/fields.toml"
FOLDERS = ("abi", "common", "engine", "host", "hw/sim", "include", "lib", "nic", "sim", "tools")
OWNED = ("abi", "engine", "host", "lib", "nic", "sim")

_DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.M)
_HEAD = re.compile(r"\b(?:struct|union)\b(?:\s+__\w+)*\s*(\w*)\s*\{")
_ATTRIBUTE = re.compile(r"\b(?:__\w+|_Alignas|HOMA_ALIGN\w*)\s*\((?:[^()]|\([^()]*\))*\)")
# HOMAD_COUNTERS(X) declares fields that the list behind it explains.
_LIST = re.compile(r"^\s*[A-Z_0-9]+\((?:[^()]|\([^()]*\))*\)(?=\s*\S)")
_FLEXIBLE = re.compile(r"\bDECLARE_FLEX_ARRAY\(.*,\s*(\w+)\)")
_POINTER = re.compile(r"\(\s*\*+\s*(?:const\s+)?(\w+)")
_BRACKETS = re.compile(r"\[[^\]]*\]|:[^,;]*|\([^()]*\)")
# Padding says what it is by its name.
_PAD = re.compile(r"_?pad\d*")
_OWNER = re.compile(r"\b(?:[Ww]ritten|[Gg]uarded)[\s*]+by:\s")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


@dataclass
class Comment:
    start: int
    end: int
    text: str


@dataclass
class Struct:
    """One definition: where it stands, its fields as (name, first and last line), and all
    that is said above it and in it."""

    name: str
    line: int
    fields: list[tuple[str, int, int]] = field(default_factory=list)
    said: str = ""
    outer: bool = True


class Source:
    """A file's lines of code and its comments."""

    def __init__(self, text: str) -> None:
        self.text = text
        code = COMMENT_OR_STRING.sub(_blank, text)
        self.code = _DIRECTIVE.sub(_blank, code)
        self.lines = code.split("\n")
        self.comments = [
            Comment(self.line(m.start()), self.line(m.end() - 1), m[0])
            for m in COMMENT_OR_STRING.finditer(text)
            if m[0].startswith("/")
        ]
        self.trailing = {c.start: c for c in self.comments if self.lines[c.start - 1].strip()}
        self.above = {c.end: c for c in self.comments if not self.lines[c.start - 1].strip()}

    def line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def explained(self, first: int, last: int) -> bool:
        return first - 1 in self.above or any(n in self.trailing for n in range(first, last + 1))

    def head(self) -> str:
        """The comments before the first line of code."""
        first = next((n for n, line in enumerate(self.lines, 1) if line.strip()), 0)
        return "\n".join(c.text for c in self.comments if c.end < first)

    def structs(self) -> list[Struct]:
        found: list[tuple[int, int, Struct]] = []
        for match in _HEAD.finditer(self.code):
            start, end = match.end(), _closing(self.code, match.end())
            one = Struct(match[1], self.line(match.start()))
            one.fields = list(self._fields(start, end))
            first, last = self.line(match.start()), self.line(end)
            one.said = "\n".join(c.text for c in self.comments if first <= c.start <= last)
            if first - 1 in self.above:
                one.said += self.above[first - 1].text
            for outer_start, outer_end, outer in found:
                if outer_start < start < outer_end:
                    one.said += outer.said
                    one.outer = False
            found.append((start, end, one))
        return [one for _, _, one in found]

    def _fields(self, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Name, first and last line of each field between two braces."""
        depth, begin = 0, start
        for at in range(start, end):
            depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(self.code[at], 0)
            if self.code[at] != ";" or depth:
                continue
            declared = self.code[begin:at]
            spaces = len(declared) - len(declared.lstrip())
            first, last = self.line(begin + spaces), self.line(at)
            begin = at + 1
            if "}" in declared:
                declared = "x " + declared[declared.rindex("}") + 1 :]
                if not declared[2:].strip():
                    continue
            for name in names(declared):
                yield name, first, last


def _closing(code: str, start: int) -> int:
    depth = 1
    for match in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.start()
    return len(code)


def names(declared: str) -> list[str]:
    """The names in a declaration: u8 *a, b[2], c : 3, and those of pointers to functions."""
    declared = _ATTRIBUTE.sub("", declared)
    declared = _LIST.sub("", declared)
    special = _FLEXIBLE.search(declared) or _POINTER.search(declared)
    if special:
        return [special[1]]
    while _BRACKETS.search(declared):
        declared = _BRACKETS.sub(" ", declared)
    found = []
    for part in declared.split(","):
        words = [w for w in re.findall(r"\w+", part) if not w.startswith("__")]
        found += words[-1:]
    return found


def unexplained(tree: Tree, path: Path) -> list[str]:
    source = Source(tree.text(path))
    return [
        f"{tree.name(path)}:{first}: {one.name or 'a struct'}.{name} has no word of comment"
        for one in source.structs()
        for name, first, last in one.fields
        if not source.explained(first, last)
        and not _PAD.fullmatch(name)
        and not re.search(rf"@{name}\b", one.said)
    ]


def unowned(tree: Tree, path: Path) -> list[str]:
    """Structs of a header of which nothing says who writes them."""
    source = Source(tree.text(path))
    if _OWNER.search(source.head()):
        return []
    return [
        f"{tree.name(path)}:{one.line}: nothing says who writes struct {one.name}"
        for one in source.structs()
        if one.outer and one.fields and not _OWNER.search(one.said)
    ]


def _files(tree: Tree, folders: tuple[str, ...]) -> Iterator[Path]:
    for path in tree.c_files():
        if tree.name(path).startswith(tuple(f"{f}/" for f in folders)):
            yield path


def _ratchet(tree: Tree, table: str, problems: list[str]) -> list[str]:
    path = tree.root / RATCHET
    said = tomllib.loads(path.read_text()).get(table, {}) if path.exists() else {}
    counts = Counter(p.split(":")[0] for p in problems)
    found = [p for p in problems if counts[p.split(":")[0]] > said.get(p.split(":")[0], 0)]
    for file in sorted(set(said) | set(counts)):
        if counts[file] < said.get(file, 0):
            found.append(f"{RATCHET}: {file} has {counts[file]} now, write this into [{table}]")
    return found


def check_words(tree: Tree) -> list[str]:
    problems = [p for path in _files(tree, FOLDERS) for p in unexplained(tree, path)]
    return _ratchet(tree, "unexplained", problems)


def check_owners(tree: Tree) -> list[str]:
    headers = (path for path in _files(tree, OWNED) if path.suffix == ".h")
    return _ratchet(tree, "unowned", [p for path in headers for p in unowned(tree, path)])
