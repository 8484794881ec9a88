# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Formatting, folder by folder. format.toml lists the folders whose own files, not those
below, are as clang-format (for C) and ruff (for Python) lay them out. The list may only
grow: a folder that is not in it and would pass has to be added, so that nobody can take
one out. What is no matter of taste, ruff's rules, holds for all Python."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

from fetched import program
from source import Tree
from style import text_files

RATCHET = "tests/purity/format.toml"
RULES = Path(__file__).resolve().parents[2] / "ruff.toml"

_CLANG_COMPLAINT = re.compile(r"^(.+?):(\d+):\d+: (?:error|warning): code should be", re.M)
_RUFF_COMPLAINT = re.compile(r"^(.+?):(\d+):\d+: unformatted: ", re.M)
_ADVICE = {
    "c": "clang-format -i, of the version in format.toml",
    "python": "ruff format --config ruff.toml",
}


def _run(tree: Tree, words: list[str], files: list[Path]) -> subprocess.CompletedProcess[str]:
    names = [tree.name(path) for path in files]
    return subprocess.run(
        [*words, *names], cwd=tree.root, capture_output=True, text=True, check=False
    )


def _failed(done: subprocess.CompletedProcess[str]) -> list[str]:
    lines = (done.stdout + done.stderr).splitlines() or [f"status {done.returncode}"]
    return [f"{Path(done.args[0]).name} failed: {lines[-1]}"]


def _judge(tree: Tree, kind: str, files: list[Path], bad: dict[str, str]) -> list[str]:
    """`bad`: files that would change, and a place in each."""
    listed = tomllib.loads((tree.root / RATCHET).read_text())[kind]
    inside: dict[str, list[str]] = defaultdict(list)
    for path in files:
        name = tree.name(path)
        inside[name.rpartition("/")[0]].append(name)
    problems = [f"{RATCHET}: {kind} is not in order, or names a folder twice"] * (
        sorted(set(listed)) != listed
    )
    for folder in sorted({*listed, *inside}):
        worse = [name for name in inside[folder] if name in bad]
        if not inside[folder]:
            problems.append(f"{RATCHET}: there is no {kind} in {folder}")
        elif folder in listed:
            problems += [f"{bad[name]}: not laid out as by {_ADVICE[kind]}" for name in worse]
        elif not worse:
            problems.append(f"{RATCHET}: {folder} is formatted, add it to {kind}")
    return problems


def check_c(tree: Tree) -> list[str]:
    if not (tree.root / RATCHET).exists():
        return []
    files = list(tree.c_files())
    done = _run(tree, [program("clang-format"), "--dry-run", "--Werror"], files)
    bad: dict[str, str] = {}
    for name, line in _CLANG_COMPLAINT.findall(done.stderr):
        bad.setdefault(name, f"{name}:{line}")
    if done.returncode and not bad:
        return _failed(done)
    return _judge(tree, "c", files, bad)


def check_python(tree: Tree) -> list[str]:
    if not (tree.root / RATCHET).exists():
        return []
    files = text_files(tree, (".py",))
    if not files:
        return []
    words = [program("ruff"), "format", "--check", "--no-cache", "--output-format", "concise"]
    done = _run(tree, [*words, "--config", str(RULES)], files)
    bad = {name: f"{name}:{line}" for name, line in _RUFF_COMPLAINT.findall(done.stdout)}
    if done.returncode and not bad:
        return _failed(done)
    return _judge(tree, "python", files, bad)


def check_rules(tree: Tree) -> list[str]:
    """Rules for all Python: unused names, mistakes that are known to be common, and so on."""
    files = text_files(tree, (".py",))
    if not files:
        return []
    words = [program("ruff"), "check", "--no-cache", "--quiet", "--output-format", "concise"]
    done = _run(tree, [*words, "--config", str(RULES)], files)
    return (done.stdout.splitlines() or _failed(done)) if done.returncode else []
