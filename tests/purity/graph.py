# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Who includes whom: no circles, and no arrow that points upward in
docs/architecture.md (lib -> host -> engine, host -> nic, bench -> lib)."""

from __future__ import annotations

import os
from pathlib import Path

from source import Tree

# What a top folder may include besides itself. tests may include everything,
# examples are written as a user would write them.
MAY_INCLUDE: dict[str, set[str]] = {
    "engine": set(),
    "abi": set(),
    "include": {"abi"},
    "common": {"engine"},
    "nic": {"engine", "common"},
    "sim": {"engine", "common"},
    "host": {"engine", "nic", "common", "include", "abi"},
    "lib": {"engine", "nic", "common", "include", "abi", "host"},
    "bench": {"lib", "common", "include", "abi", "engine"},
    "examples": {"include", "abi"},
    "tools": {"abi"},
}

# The same for the folders of the engine: what each may include besides itself.
ENGINE_MAY_INCLUDE: dict[str, set[str]] = {
    "plat": set(),
    "base": {"plat"},
    "link": {"plat", "base"},
    "wire": {"plat", "base"},
    "homa": {"plat", "base", "link", "wire"},
    "tcp": {"plat", "base", "link", "wire"},
}


def resolve(tree: Tree, source: Path, what: str) -> Path | None:
    """The file of the tree that an #include means, None if it is none of ours."""
    beside = Path(os.path.normpath(source.parent / what))
    files = set(tree.c_files())
    if beside in files:
        return beside
    for top in (tree.root, tree.root / "include"):
        if Path(os.path.normpath(top / what)) in files:
            return Path(os.path.normpath(top / what))
    ends = [f for f in tree.c_files() if f.as_posix().endswith("/" + what)]
    # homa_plat.h exists once per seam; user space is the one that is built here. Other
    # names are unique among what ships (names.py), and may repeat among tests.
    ends.sort(key=lambda f: ("/kernel/" in f.as_posix(), len(f.as_posix())))
    return ends[0] if ends else None


def edges(tree: Tree) -> dict[Path, list[tuple[int, Path]]]:
    graph: dict[Path, list[tuple[int, Path]]] = {}
    for path in tree.c_files():
        targets = []
        for line, what, system in tree.include_lines(path):
            if system and not what.startswith("homa"):
                continue
            target = resolve(tree, path, what)
            if target:
                targets.append((line, target))
        graph[path] = targets
    return graph


def check_circles(tree: Tree) -> list[str]:
    graph = edges(tree)
    state: dict[Path, int] = {}
    problems: list[str] = []

    def visit(path: Path, trail: list[Path]) -> None:
        state[path] = 1
        for _, target in graph.get(path, []):
            if state.get(target) == 1:
                circle = trail[trail.index(target) :] + [target]
                problems.append("circle: " + " -> ".join(map(tree.name, circle)))
            elif target not in state:
                visit(target, trail + [target])
        state[path] = 2

    for path in graph:
        if path not in state:
            visit(path, [path])
    return problems


def check_arrows(tree: Tree) -> list[str]:
    problems = []
    for path, targets in edges(tree).items():
        top = path.relative_to(tree.root).parts[0]
        allowed = MAY_INCLUDE.get(top)
        if allowed is None:
            continue
        for line, target in targets:
            other = target.relative_to(tree.root).parts[0]
            if other != top and other not in allowed:
                problems.append(
                    f"{tree.name(path)}:{line}: {top}/ may not include {tree.name(target)}"
                )
    return problems


def check_engine_layers(tree: Tree) -> list[str]:
    """Within the engine: a protocol stands on all, and the others know no protocol."""
    problems = []
    for path, targets in edges(tree).items():
        parts = path.relative_to(tree.root).parts
        if parts[0] != "engine" or len(parts) < 3:
            continue
        if parts[1] not in ENGINE_MAY_INCLUDE:
            problems.append(f"{tree.name(path)}: graph.py does not know engine/{parts[1]}/")
            continue
        for line, target in targets:
            other = target.relative_to(tree.root).parts
            if other[0] == "engine" and other[1] != parts[1]:
                if other[1] not in ENGINE_MAY_INCLUDE[parts[1]]:
                    where = f"{tree.name(path)}:{line}"
                    problems.append(f"{where}: {parts[1]}/ may not include {tree.name(target)}")
    return problems
