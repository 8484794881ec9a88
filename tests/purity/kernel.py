# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The engine compiled by the kernel's own build over engine/plat/kernel, for
each set of kernel headers that is installed. Compiled, not linked: what is
tested here is that the engine compiles alone; homa.ko is built by lab/vm."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
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
    if not shutil.which("make"):
        raise Skip("there is no make")
    headers = header_trees()
    if not headers:
        raise Skip("no kernel headers in /lib/modules/*/build or /usr/src/linux-headers-*")
    problems = []
    for kernel in headers:
        problems += [f"{kernel.name}: {p}" for p in compile_against(tree, kernel)]
    return problems


def compile_against(tree: Tree, kernel: Path) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="homa-kbuild-") as scratch:
        module = Path(scratch)
        # The kernel's build writes beside the sources, so it gets a copy.
        shutil.copytree(tree.root / "engine", module / "engine")
        objects = [tree.name(s)[: -len(".c")] + ".o" for s in tree.engine_sources()]
        folders = ["plat/kernel", *ENGINE_FOLDERS]
        includes = " ".join(f"-I$(src)/engine/{f}" for f in folders)
        (module / "Kbuild").write_text(
            f"ccflags-y := {includes} {CFLAGS}\n"
            "obj-m := homa_purity.o\n"
            f"homa_purity-y := {' '.join(objects)}\n"
        )
        done = subprocess.run(
            ["make", "-j2", "-C", str(kernel), f"M={module}", *objects],
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
