# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the engine's text may not contain, and how long files and functions may
be. Kernel formatting makes the second easy: a function's braces stand alone in
column 0, and one that hides elsewhere is itself a finding."""

from __future__ import annotations

import re
from pathlib import Path

from source import Tree

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80

_KERNEL_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)\b.*\b__KERNEL__\b", re.M)
_FLOAT = re.compile(r"\b(float|double|long double|_Float\d+|__float128)\b")
_FLOAT_CONSTANT = re.compile(r"(?<![\w.])(\d+\.\d*|\.\d+)([eE][+-]?\d+)?[fFlL]?(?![\w.])")
_HIDDEN_BODY = re.compile(r"^[A-Za-z_][^;={}]*\)\s*\{\s*$")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def check_no_kernel_condition(tree: Tree) -> list[str]:
    """The seam knows where the engine runs; the engine does not."""
    problems = []
    for path in tree.engine_files():
        code = tree.code(path)
        for match in _KERNEL_CONDITION.finditer(code):
            problems.append(f"{tree.name(path)}:{_line(code, match.start())}: asks for __KERNEL__")
    return problems


def check_no_float(tree: Tree) -> list[str]:
    problems = []
    for path in tree.engine_files():
        code = tree.code(path)
        for pattern in (_FLOAT, _FLOAT_CONSTANT):
            for match in pattern.finditer(code):
                where = f"{tree.name(path)}:{_line(code, match.start())}"
                problems.append(f"{where}: floating point ({match.group(0)})")
    return problems


def check_engine_includes(tree: Tree) -> list[str]:
    """No system header, and nothing from above the engine."""
    names = {f.name for f in tree.engine_files()} | {"homa_plat.h"}
    # Lists that are included several times (X macros) are data of the engine.
    names |= {f.name for f in (tree.root / "engine").rglob("*.def")}
    problems = []
    for path in tree.engine_files():
        for line, what, system in tree.include_lines(path):
            where = f"{tree.name(path)}:{line}"
            if system:
                problems.append(f"{where}: system header <{what}>; use homa_plat.h")
            elif "/" in what or what not in names:
                problems.append(f'{where}: "{what}" is not a header of the engine')
    return problems


def check_file_length(tree: Tree) -> list[str]:
    problems = []
    for path in tree.c_files():
        lines = tree.text(path).count("\n")
        if lines > MAX_FILE_LINES:
            problems.append(f"{tree.name(path)}: {lines} lines, more than {MAX_FILE_LINES}")
    return problems


def functions(code: str) -> list[tuple[str, int, int]]:
    """(name, first line, number of lines from brace to brace) of each function."""
    lines = code.split("\n")
    found = []
    start = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start is not None:
            found.append((_name_before(lines, start), start, number - start + 1))
            start = None
    return found


def _name_before(lines: list[str], brace: int) -> str:
    head = ""
    for line in reversed(lines[: brace - 1]):
        if not line.strip() or line.startswith(("}", "#")) or line.rstrip().endswith(";"):
            break
        head = line + " " + head
    match = re.search(r"(\w+)\s*\(", head)
    return match.group(1) if match else "?"


def check_function_length(tree: Tree) -> list[str]:
    problems = []
    for path in tree.c_files():
        code = tree.code(path)
        for name, line, length in functions(code):
            if length > MAX_FUNCTION_LINES:
                where = f"{tree.name(path)}:{line}"
                problems.append(f"{where}: {name}() has {length} lines")
        problems += _hidden_bodies(tree, path, code)
    return problems


def _hidden_bodies(tree: Tree, path: Path, code: str) -> list[str]:
    return [
        f"{tree.name(path)}:{number}: a function's brace belongs on a line of its own"
        for number, line in enumerate(code.split("\n"), 1)
        if _HIDDEN_BODY.match(line) and not line.startswith(("extern ", "#", "else"))
    ]
