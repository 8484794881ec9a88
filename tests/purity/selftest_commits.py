# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The self-test of commits.py: repositories of a few commits that it must refuse, accept or
leave alone."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import commits
from source import Skip, Tree

_GOOD = "engine: a subject\n\nA body that says why."
# What each repository's one commit after the base says, and a part of the complaint; "" is none.
_MESSAGES = {
    "refuses_a_commit_with_a_long_subject": ("x" * 73 + "\n\nA body.", "73 characters"),
    "refuses_a_commit_without_a_body": ("A subject", "no body"),
    "refuses_a_commit_with_a_body_of_blanks": ("A subject\n\n \n", "no body"),
    "refuses_a_commit_without_an_empty_line": ("A subject\nand its body", "no empty line"),
    "accepts_a_commit_of_72": ("x" * 72 + "\n\nA body.", ""),
}


def _git(root: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false"]
    command = ["git", "-C", str(root), *who, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _commit(root: Path, message: str) -> None:
    _git(root, "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--message", message)


def _repository(scratch: str) -> tuple[Path, str]:
    """One with a base whose own message is bad, and the base."""
    if not shutil.which("git"):
        raise Skip("git is not installed")
    root = Path(scratch, "repository")
    root.mkdir()
    _git(root, "init", "--quiet")
    _commit(root, "y" * 100)
    return root, _git(root, "rev-parse", "HEAD")


def _message(message: str, part: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="homa-selftest-") as scratch:
        root, base = _repository(scratch)
        _commit(root, _GOOD)
        _commit(root, message)
        problems = commits.check_messages(Tree(root), base)
    if part and len(problems) == 1 and part in problems[0]:
        return []
    return [] if problems == [] and not part else [f"for '{part}' there were {problems}"]


def _no_history() -> list[str]:
    """Neither a shallow clone nor a folder without git fails, nor one within another repository."""
    with tempfile.TemporaryDirectory(prefix="homa-selftest-") as scratch:
        root, base = _repository(scratch)
        _commit(root, "A subject without a body")
        shallow = Path(scratch, "shallow")
        _git(root, "clone", "--quiet", "--depth=1", f"file://{root}", str(shallow))
        inner = root / "inner"
        bare = Path(scratch, "bare")
        for folder in (inner, bare):
            folder.mkdir()
        problems = []
        for tree in (shallow, inner, bare):
            try:
                problems.append(f"{tree.name}: {commits.check_messages(Tree(tree), base)}")
            except Skip:
                continue
    return problems


def checks() -> dict[str, Callable[[], list[str]]]:
    found: dict[str, Callable[[], list[str]]] = {
        "selftest__leaves_commits_without_history": _no_history
    }
    for name, (message, part) in _MESSAGES.items():
        found[f"selftest__{name}"] = partial(_message, message, part)
    return found
