# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""One name means one thing: headers, their guards and struct tags are unique in the
tree, and the kernel module's own names have a prefix that the engine's have not."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from source import Tree
from text import functions

# The seam exists once for user space and once for the kernel.
_SEAM = "engine/plat/"
# Stands in for homa_clock.h, so that it must have its guard.
_STAND_INS = {"tests/fuzz/fuzz_clock.h"}
_GUARD = re.compile(r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+_H)\b", re.MULTILINE)
_TAG = re.compile(r"^(?:struct|union|enum)\s+(\w+)\s*\{", re.MULTILINE)
_SYSTEM_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([\w-]+\.h)>", re.MULTILINE)
# Those that the system's headers include, whether or not a file of ours does.
_SYSTEM_HEADERS = frozenset(
    "assert.h ctype.h endian.h errno.h fcntl.h features.h float.h inttypes.h limits.h locale.h"
    " math.h poll.h pthread.h sched.h signal.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h"
    " stdio.h stdlib.h string.h strings.h time.h unistd.h wchar.h".split()
)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
# What else reads: programs that talk to the module by netlink, and tc.
_KERNEL_ABI = {"host/kernel/observe/homa_diag.h", "host/kernel/qdisc/homa_qdisc.h"}
_ENGINES = re.compile(r"homa\d?_(?!plat_)|HOMA_(?!\w+_H$)")


def _twice(tree: Tree, places: dict[str, list[Path]], what: str) -> list[str]:
    return [
        f"{what} {name} is in " + " and in ".join(sorted(tree.name(p) for p in paths))
        for name, paths in sorted(places.items())
        if len(paths) > 1
    ]


def _in_seam(tree: Tree, path: Path) -> bool:
    return tree.name(path).startswith(_SEAM)


def check_headers(tree: Tree) -> list[str]:
    """An #include is found by the name alone, so two files of one name are one too many."""
    names, guards = defaultdict(list), defaultdict(list)
    for path in tree.c_files():
        if path.suffix != ".h" or _in_seam(tree, path):
            continue
        names[path.name].append(path)
        guard = _GUARD.search(tree.code(path))
        if guard and tree.name(path) not in _STAND_INS:
            guards[guard.group(1)].append(path)
    return _twice(tree, names, "a header") + _twice(tree, guards, "the guard")


def check_system_headers(tree: Tree) -> list[str]:
    """A header of ours on the include path is found before the system's of the same name, also by
    the system's own headers: <linux/ethtool.h> includes <limits.h>."""
    ours, included = [], set(_SYSTEM_HEADERS)
    for path in tree.c_files():
        included.update(_SYSTEM_INCLUDE.findall(tree.code(path)))
        # What is under include/ is meant to be found as the system's are.
        if path.suffix == ".h" and not tree.name(path).startswith("include/"):
            ours.append(path)
    return [
        f"{tree.name(path)} hides the system's header <{path.name}>"
        for path in ours
        if path.name in included
    ]


def check_tags(tree: Tree) -> list[str]:
    """In what ships; a test may call its own things what it likes."""
    tags = defaultdict(list)
    for path in tree.c_files():
        if tree.name(path).startswith("tests/") or _in_seam(tree, path):
            continue
        for tag in set(_TAG.findall(tree.code(path))):
            tags[tag].append(path)
    return _twice(tree, tags, "a struct, union or enum")


def check_kernel_prefix(tree: Tree) -> list[str]:
    """In homa.ko, homa_ is the engine's and homak_ is host/kernel's, so that a name says which
    of the two it belongs to. Guards are named after their headers."""
    problems = []
    for path in tree.c_files():
        if not tree.name(path).startswith("host/kernel/") or tree.name(path) in _KERNEL_ABI:
            continue
        code = tree.code(path)
        found = (
            {name for name, _, _ in functions(code)}
            | set(_TAG.findall(code))
            | set(_MACRO.findall(code))
        )
        problems += [
            f"{tree.name(path)}: {name} is named as the engine's are, not homak_"
            for name in sorted(found)
            if _ENGINES.match(name)
        ]
    return problems
