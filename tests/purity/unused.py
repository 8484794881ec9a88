# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Files that nothing uses: a .c that no build compiles, a .h that no file includes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from source import Tree

FOLDERS = ("host", "lib", "nic", "sim")
_QUOTED = re.compile(r"'([\w./-]+)'")
_OBJECT = re.compile(r"([\w./-]+)\.o\b")
_PREFIXED = re.compile(r"\$\(addprefix ([\w./-]+),([^)]*)\)")


def _compiled(tree: Tree) -> set[Path]:
    """What meson.build names in quotation marks, and Kbuild or a Makefile as objects, each from
    its own folder."""
    found = set()
    for path in tree.root.glob("**/meson.build"):
        found |= {path.parent / name for name in _QUOTED.findall(path.read_text())}
    for kind in ("Kbuild", "Makefile"):
        for path in tree.root.glob(f"**/{kind}"):
            text = _PREFIXED.sub(_add_prefix, path.read_text())
            found |= {path.parent / f"{name}.c" for name in _OBJECT.findall(text)}
    return {Path(os.path.normpath(path)) for path in found}


def _add_prefix(match: re.Match[str]) -> str:
    """make's $(addprefix qdisc/,a.o b.o) is qdisc/a.o qdisc/b.o."""
    return " ".join(match[1] + word for word in match[2].split())


def check_files(tree: Tree) -> list[str]:
    compiled = _compiled(tree)
    included = {
        Path(what).name for path in tree.c_files() for _, what, _ in tree.include_lines(path)
    }
    problems = []
    for path in tree.c_files():
        if path.relative_to(tree.root).parts[0] not in FOLDERS or path.name in included:
            continue
        if path.suffix == ".h":
            problems.append(f"{tree.name(path)}: no file includes it")
        elif path not in compiled:
            problems.append(f"{tree.name(path)}: no build compiles it")
    return problems
