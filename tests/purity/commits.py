# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Messages of commits, as CONTRIBUTING.md wants them: a subject of at most 72 characters, an empty
line, and a body. Commits up to BASE are as they are. Where the history is not there, in an archive
or in a clone that does not reach back to BASE, the check is skipped."""

from __future__ import annotations

import os
import subprocess

from source import Skip, Tree

BASE = "062d22ac9718443c5b4565e9ed48925adb9878af"
SUBJECT = 72


def _git(tree: Tree, *words: str) -> str | None:
    """What git says of the tree's own repository; None if it fails. Variables such as GIT_DIR, which
    hooks have, would lead it to another one."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(tree.root), *words],
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def check_messages(tree: Tree, base: str = BASE) -> list[str]:
    """Merges say what they merge and need no body."""
    top = _git(tree, "rev-parse", "--show-toplevel")
    if top is None or os.path.realpath(top.strip()) != str(tree.root):
        raise Skip("this tree is no git repository")
    if _git(tree, "merge-base", "--is-ancestor", base, "HEAD") is None:
        raise Skip(f"the history does not reach back to {base[:12]}")
    log = _git(tree, "log", "--no-merges", "--format=%h%n%B%x00", f"{base}..HEAD")
    if log is None:
        raise Skip("git does not show the history")
    problems = []
    for entry in log.split("\0"):
        name, _, message = entry.strip("\n").partition("\n")
        if name:
            problems += [f"commit {name}: {fault}" for fault in _faults(message)]
    return problems


def _faults(message: str) -> list[str]:
    subject, _, rest = message.strip("\n").partition("\n")
    faults = []
    if len(subject) > SUBJECT:
        faults.append(f"its subject has {len(subject)} characters, not {SUBJECT} at most")
    if not subject.strip():
        faults.append("it has no subject")
    if not rest.strip():
        faults.append("it has no body that says why")
    elif rest.split("\n")[0].strip():
        faults.append("no empty line follows its subject")
    return faults
