# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The engine compiled by the kernel's own build over engine/plat/kernel, and the files of
homa.ko around it, for each set of kernel headers that is installed. Compiled, not linked:
what is tested here is that the engine compiles alone, and that a change which breaks the
module is noticed without a virtual machine; homa.ko is built and run by lab/vm."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from source import ENGINE_FOLDERS, Skip, Tree

CFLAGS = "-Wframe-larger-than=1024 -Wmissing-prototypes -Wvla -Werror"


def header_trees() -> list[Path]:
    """Kernel build trees, newest name last, each once."""
    found: dict[str, Path] = {}
    for pattern in ("/lib/modules/*/build", "/usr/src/linux-headers-*"):
        for name in glob.glob(pattern):
            path = Path(os.path.realpath(name))
            # Debian's -common package has no configuration of its own.
            if (path / "Makefile").exists() and (path / ".config").exists():
                found[path.name] = path
    return [found[k] for k in sorted(found)]


def check_kernel(tree: Tree) -> list[str]:
    if not (tree.root / "engine/plat/kernel/homa_plat.h").exists():
        raise Skip("there is no engine/plat/kernel/homa_plat.h")
    if not tree.engine_sources():
        raise Skip("there is no engine source yet")
    return _against_all(tree, _compile_engine)


def check_module(tree: Tree) -> list[str]:
    if not (tree.root / "host/kernel/Kbuild").exists():
        raise Skip("there is no host/kernel/Kbuild")
    return _against_all(tree, _compile_module)


def _against_all(tree: Tree, compile_it: Callable[[Tree, Path, Path], list[str]]) -> list[str]:
    if not shutil.which("make"):
        raise Skip("there is no make")
    headers = header_trees()
    if not headers:
        raise Skip("no kernel headers in /lib/modules/*/build or /usr/src/linux-headers-*")
    problems = []
    for kernel in headers:
        # The kernel's build writes beside the sources, so it gets a copy.
        with tempfile.TemporaryDirectory(prefix="homa-kbuild-") as scratch:
            found = compile_it(tree, kernel, Path(scratch))
        problems += [f"{kernel.name}: {p}" for p in found]
    return problems


def _compile_engine(tree: Tree, kernel: Path, module: Path) -> list[str]:
    shutil.copytree(tree.root / "engine", module / "engine")
    objects = [tree.name(s)[: -len(".c")] + ".o" for s in tree.engine_sources()]
    folders = ["plat/kernel", *ENGINE_FOLDERS]
    includes = " ".join(f"-I$(src)/engine/{f}" for f in folders)
    (module / "Kbuild").write_text(
        f"ccflags-y := {includes} {CFLAGS}\n"
        "obj-m := homa_purity.o\n"
        f"homa_purity-y := {' '.join(objects)}\n"
    )
    return _make(kernel, module, objects)


def _compile_module(tree: Tree, kernel: Path, module: Path) -> list[str]:
    """The module's own files, its tests inside the kernel too; the engine's are compiled above."""
    shutil.copytree(tree.root / "host/kernel", module, dirs_exist_ok=True)
    for folder in ("engine", "abi"):
        if (tree.root / folder).exists():
            shutil.copytree(tree.root / folder, module / folder)
    own = tree.root / "host/kernel"
    objects = [str(f.relative_to(own).with_suffix(".o")) for f in sorted(own.rglob("*.c"))]
    how = ["HOMA_KUNIT=y", "HOMA_PARTS=y", "W=1"]
    found = _make(kernel, module, objects, *how, "KCFLAGS=-Werror")
    # What 32-bit kernels have instead.
    return found or _make(kernel, module, ["copy.o"], *how, "KCFLAGS=-Werror -DHOMAK_COPY_ARGS")


def _make(kernel: Path, module: Path, objects: list[str], *arguments: str) -> list[str]:
    done = subprocess.run(
        ["make", "-j2", "-C", str(kernel), f"M={module}", *arguments, *objects],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode == 0:
        missing = [o for o in objects if not (module / o).exists()]
        return [f"make built no {o}" for o in missing]
    errors = [
        line.replace(f"{module}/", "")
        for line in done.stderr.splitlines()
        if ": error:" in line or "fatal error" in line
    ]
    return errors[:20] or [done.stderr.strip()[-2000:]]
