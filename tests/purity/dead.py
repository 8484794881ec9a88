# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Functions, macros and fields of structs in what ships that nothing else in what ships names.
That a test names one does not count, for then only the test keeps it alive; FOR_TESTS has those
that are there for tests."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from calls import File
from source import Tree
from style import text_files

# What only tests use, and why it stands where it stands.
FOR_TESTS = {
    "homa_assert": "assertions of the engine about itself",
    "homa_engine_params": "tests compare what an engine made of its settings",
    "homa_json_hist_read": "the reverse of the writer, and the proof that nothing is lost",
    "homa_plat_locks_held": "the checker of lock order is tested itself",
    "homa_trylock": "a lock of the seam like the others",
    "homa_wire_checksum": "tests of frames: the checksum of the TCP disguise",
    "homa_wire_error_text": "the words for what the codec refuses",
    "homa_wire_raw_get": "tests of frames: fields that the protocol does not use",
    "homa_wire_raw_put": "tests of frames: fields that the protocol does not use",
    "nic_memory_attach": "the network without sockets of the tests",
    "nic_memory_configure": "the network without sockets of the tests",
    "nic_memory_create": "the network without sockets of the tests",
    "nic_memory_destroy": "the network without sockets of the tests",
}
SHIPPED = ("engine", "nic", "common", "host", "sim", "lib", "bench")
# Called from outside of the tree: by the loader, the kernel's macros, or programs.
_FROM_OUTSIDE = re.compile(
    r"\b(?:HOMA_PL_HOOK|SEC|TRACE_EVENT|DEFINE_EVENT|__attribute__|__visible|asmlinkage)\b"
)


# Read by the kernel's headers, whose name it is.
_MACROS_FROM_OUTSIDE = {"CREATE_TRACE_POINTS"}
_CONSTANT = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?![\w(])", re.M)
_STRUCT = re.compile(r"^(?:static )?struct \w+ \{\n(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r"^\s+[\w \t*]*?[\w*]+[ \t*]+(\w+)(?:\[[^\]]*\])*(?: : \d+)?;", re.M)

# A macro at the beginning of a line, as module_init(homak_load); or HOMA_WIRE_AT(...);
_AT_TOP = re.compile(r"^[A-Za-z_]\w*\([^;{}]*\);", re.M)


def _exported(tree: Tree) -> set[str]:
    """What version scripts make visible, and what abi/ and include/ declare."""
    words: set[str] = set()
    for path in tree.root.glob("lib/**/*.map"):
        words |= set(re.findall(r"\w+", path.read_text()))
    for path in tree.c_files():
        if tree.name(path).startswith(("include/", "abi/")):
            words |= set(re.findall(r"\w+", tree.code(path)))
    return words | {"main", "qemu_plugin_install"}


def _heads(code: str) -> dict[str, str]:
    """Each function's name with the line that it stands in."""
    return {m[1]: m[0] for m in re.finditer(r"^.*?\b(\w+)\([^;]*$", code, re.M)}


def check_dead(tree: Tree) -> list[str]:
    files = {path: File(tree.code(path), path.suffix == ".h") for path in tree.c_files()}
    named: set[str] = set()
    for path, file in files.items():
        if not tree.name(path).startswith("tests/"):
            named |= file.named
            for call in _AT_TOP.findall(tree.code(path)):
                named |= set(re.findall(r"\w+", call))
    for path in tree.root.glob("**/*.def"):
        named |= set(re.findall(r"\w+", path.read_text()))
    known = named | _exported(tree)
    unused: set[str] = set()
    problems = []
    for path, file in files.items():
        if path.relative_to(tree.root).parts[0] not in SHIPPED:
            continue
        heads: dict[str, str] | None = None
        for name in sorted((file.shared | file.private) - known):
            heads = heads if heads is not None else _heads(tree.code(path))
            unused.add(name)
            if name not in FOR_TESTS and not _FROM_OUTSIDE.search(heads.get(name, "")):
                problems.append(f"{tree.name(path)}: nothing uses {name}()")
    if tree.root == Path(__file__).resolve().parents[2]:
        stale = sorted(set(FOR_TESTS) - unused)
        problems += [f"dead.py: {name}() is gone, or used by more than tests" for name in stale]
    return problems


def check_constants(tree: Tree) -> list[str]:
    """Each macro without parameters and each field of a struct is named a second time."""
    code = {path: tree.code(path) for path in tree.c_files()}
    count: Counter[str] = Counter()
    for path, text in code.items():
        if not tree.name(path).startswith("tests/"):
            count.update(re.findall(r"\w+", text))
    for path in text_files(tree, (".def", ".py", ".lua", ".map")):
        if not tree.name(path).startswith("tests/"):
            count.update(re.findall(r"\w+", tree.text(path)))
    problems = []
    for path, text in code.items():
        if path.relative_to(tree.root).parts[0] not in SHIPPED:
            continue
        names = set(_CONSTANT.findall(text)) - _MACROS_FROM_OUTSIDE
        fields = {n for body in _STRUCT.findall(text) for n in _FIELD.findall(body)}
        problems += [
            f"{tree.name(path)}: nothing uses {name}"
            for name in sorted(names | fields)
            if count[name] == 1
        ]
    return problems
