# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests that cannot fail, as far as a program can see them: a test without an assertion, an
assertion that holds for every value, an assertion of which one half excuses the other, and a
file of tests that no build compiles and no stage runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from source import Tree
from text import functions

# What raises when it is not so: in Python by these names, in C by these prefixes.
_RAISES = {"raises", "fail", "check", "check_call", "warns"}
_ASSERTS = re.compile(
    r"\b(?:\w*assert\w*|fail_msg|fail|API_CHECK|pair_check|\w*_check\w*|expect\w*|CHECK)\s*\("
)
# A function may be handed on by its name, so any name counts as a call.
_CALL = re.compile(r"\b([a-z_]\w*)\b")
_NAMED = re.compile(r"cmocka_unit_test\w*\(\s*(\w+)")
_EITHER = re.compile(r"\bassert_true\s*\([^;]*\|\|[^;]*\)\s*;", re.S)


def _python(tree: Tree) -> list[Path]:
    return sorted(p for p in (tree.root / "tests").rglob("*.py") if "__pycache__" not in p.parts)


def _c(tree: Tree) -> list[Path]:
    return sorted(p for p in (tree.root / "tests").rglob("*.[ch]"))


# ---- assertions of one shape ----


def _always(test: ast.expr) -> str | None:
    """Why this condition says nothing; None: it says something."""
    if isinstance(test, ast.Constant | ast.Tuple | ast.JoinedStr):
        return "it is a constant"
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return "one half excuses the other; ask with an if which one must hold"
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        if ast.dump(test.left) == ast.dump(test.comparators[0]):
            return "both sides are the same"
    return None


def check_assertions(tree: Tree) -> list[str]:
    problems = []
    for path in _python(tree):
        for node in ast.walk(ast.parse(tree.text(path))):
            if isinstance(node, ast.Assert) and (why := _always(node.test)):
                problems.append(
                    f"{tree.name(path)}:{node.lineno}: an assertion that cannot fail: {why}"
                )
    for path in _c(tree):
        code = tree.code(path)
        for match in _EITHER.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            problems.append(
                f"{tree.name(path)}:{line}: one half of this assertion excuses the other"
            )
    return problems


# ---- tests without any ----


def _calls(node: ast.AST) -> set[str]:
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = part.func
            found.add(name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", ""))
    return found


def _closure(asserting: set[str], calls: dict[str, set[str]]) -> set[str]:
    """Functions that assert, or call one that does."""
    grown = True
    while grown:
        more = {
            name for name, called in calls.items() if name not in asserting and called & asserting
        }
        asserting |= more
        grown = bool(more)
    return asserting


def _python_without(tree: Tree) -> list[str]:
    calls: dict[str, set[str]] = {}
    asserting = set(_RAISES)
    tests = []
    files = _python(tree) + sorted((tree.root / "lab").rglob("*.py"))
    for path in files:
        for node in ast.walk(ast.parse(tree.text(path))):
            if not isinstance(node, ast.FunctionDef):
                continue
            calls.setdefault(node.name, set()).update(_calls(node))
            if any(isinstance(part, ast.Assert | ast.Raise) for part in ast.walk(node)):
                asserting.add(node.name)
            if node.name.startswith("test_") and path.name.startswith("test_"):
                tests.append((path, node))
    asserting = _closure(asserting, calls)
    return [
        f"{tree.name(path)}:{node.lineno}: {node.name}() asserts nothing"
        for path, node in tests
        if not any(isinstance(part, ast.Assert) for part in ast.walk(node))
        and not _calls(node) & asserting
    ]


def _c_without(tree: Tree) -> list[str]:
    calls: dict[str, set[str]] = {}
    asserting: set[str] = set()
    tests: list[tuple[Path, str]] = []
    for path in _c(tree):
        code = tree.code(path)
        lines = code.split("\n")
        for name, first, length in functions(code):
            body = "\n".join(lines[first - 1 : first - 1 + length])
            calls.setdefault(name, set()).update(_CALL.findall(body))
            if _ASSERTS.search(body):
                asserting.add(name)
        # A macro may assert as well, or make the test.
        for macro in re.finditer(r"^#define (\w+)\((?:.*\\\n)*.*$", code, re.M):
            if _ASSERTS.search(macro[0]):
                asserting.add(macro[1])
        tests += [(path, name) for name in _NAMED.findall(code)]
    asserting = _closure(asserting, calls)
    return [
        f"{tree.name(path)}: {name}() asserts nothing"
        for path, name in tests
        if name in calls and name not in asserting
    ]


def check_tests_assert(tree: Tree) -> list[str]:
    return _python_without(tree) + _c_without(tree)


# ---- files that nothing runs ----


def check_tests_listed(tree: Tree) -> list[str]:
    """Each C file of a folder of tests is named in a meson.build, each Python one is found by its name."""
    problems = []
    for path in _c(tree):
        if path.suffix != ".c" or path.name.endswith(".bpf.c") or "guest" in path.parts:
            continue
        builds = [tree.text(b) for b in path.parent.glob("meson.build")]
        if path.parent.parent.name == "tests":
            builds += [tree.text(b) for b in path.parent.parent.glob("*/meson.build")]
        stem = re.sub(r"^(test|fuzz)_", "", path.stem)
        if builds and not any(re.search(rf"\b(?:{path.stem}|{stem})(?:\.c)?\b", b) for b in builds):
            problems.append(f"{tree.name(path)}: no meson.build names it")
    for path in (tree.root / "tests").rglob("meson.build"):
        if "fs.exists" in tree.text(path):
            problems.append(f"{tree.name(path)}: fs.exists lets a missing test vanish")
    for path in _python(tree):
        names = [n.name for n in ast.parse(tree.text(path)).body if isinstance(n, ast.FunctionDef)]
        if not path.name.startswith("test_") and any(n.startswith("test_") for n in names):
            problems.append(f"{tree.name(path)}: pytest does not look into it; it has tests")
    return problems
