# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Builds homa.ko against a kernel, without leaving a file in the source tree.

The kernel's build writes beside the sources, so these are mirrored into a folder of their own
per kernel and tree; what has not changed keeps its time, so a second build is short.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.vm import cache, chroot
from lab.vm.errors import BuildFailed, Missing
from lab.vm.kernels import Kernel

ROOT = Path(__file__).resolve().parents[2]
# Where each folder of the sources goes: the module's own files lie beside the engine, as the
# kernel's build wants all objects below the folder that it is given.
FOLDERS = {"host/kernel": "", "engine": "engine", "abi": "abi"}
_SUFFIXES = (".c", ".h", ".def", ".S", ".lds")
_NAMES = ("Kbuild", "Makefile")
_TIMEOUT_S = 600


def build(
    kernel: Kernel,
    out: Path | None = None,
    tree: Path = ROOT,
    *,
    strict: bool = True,
    sparse: bool = False,
    arguments: Sequence[str] = (),
) -> Path:
    """homa.ko for `kernel`; BuildFailed with the compiler's words.

    `strict` makes every warning (of W=1) an error; `sparse` checks endian types and locks as
    well, and its findings are errors, too. `out`: where the module is copied to (a folder);
    without it, it stays in the cache. `arguments` go to make.
    """
    if not (tree / "host/kernel/Kbuild").exists():
        raise Missing(f"there is no host/kernel/Kbuild in {tree}")
    if sparse and not has_sparse():
        raise Missing("sparse is not installed")
    tag = hashlib.sha256(f"{tree.resolve()} {strict} {arguments}".encode()).hexdigest()
    work = cache.root() / "modules" / f"{kernel.release}-{tag[:12]}"
    with cache.locked(f"module-{work.name}"):
        mirror(tree, work)
        cache.confirm(work)
        module = compile_in(kernel, work, strict=strict, sparse=sparse, arguments=arguments)
        assert module is not None
        target = out or _own_place(module)
        target.mkdir(parents=True, exist_ok=True)
        for other in module.parent.glob("*.ko"):
            shutil.copy2(other, target / other.name)
        return target / module.name


def _own_place(module: Path) -> Path:
    """A folder for exactly this module: a later build must not replace it under a guest."""
    content = hashlib.sha256(module.read_bytes()).hexdigest()[:16]
    done = module.parent / "done"
    kept = sorted(done.glob("*"), key=lambda p: p.stat().st_mtime)[:-8]
    for old in kept:
        shutil.rmtree(old, ignore_errors=True)
    return done / content


def has_sparse() -> bool:
    """Endian types and lock contexts can be checked here."""
    return shutil.which("sparse") is not None


def mirror(tree: Path, work: Path) -> None:
    """Copy the sources that differ; delete what is no longer there."""
    wanted = set()
    for folder, target in FOLDERS.items():
        for path in (tree / folder).rglob("*"):
            if path.is_file() and (path.suffix in _SUFFIXES or path.name in _NAMES):
                name = target / path.relative_to(tree / folder)
                wanted.add(name)
                _copy(path, work / name)
    for path in work.rglob("*"):
        ours = path.suffix in (".c", ".h", ".def") or path.name in _NAMES
        made = path.name.endswith((".mod.c", "whole.c")) or not path.is_file()
        if ours and not made and path.relative_to(work) not in wanted:
            path.unlink()


def _copy(source: Path, target: Path) -> None:
    content = source.read_bytes()
    if target.exists() and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def compile_in(
    kernel: Kernel,
    work: Path,
    *,
    strict: bool = True,
    sparse: bool = False,
    arguments: Sequence[str] = (),
    flags: Sequence[str] = (),
    linked: bool = True,
) -> Path | None:
    """Build the module in `work`, which has a Kbuild or a Makefile; the .ko.

    `flags` go to the compiler; {work} in them is the folder as the build sees it. Without
    `linked` only objects are made, and there is no .ko.
    """
    inside = Path("/build") if kernel.chroot else work
    words = ["make", "-j2", "-C", str(kernel.headers), f"M={inside}", "W=1"]
    # Type information needs vmlinux, which is not there; the build still asks for its tool.
    stub = work / "pahole"
    stub.write_text("#!/bin/sh\necho v1.24\n")
    stub.chmod(0o755)
    words += ["CONFIG_DEBUG_INFO_BTF_MODULES=", f"PAHOLE={inside}/pahole"]
    flags = [*(["-Werror"] if strict else []), *(flag.format(work=inside) for flag in flags)]
    if flags:
        words.append(f"KCFLAGS={' '.join(flags)}")
    if sparse:
        words += ["C=2", "CHECK=sparse"]
    if kernel.is_debug:
        # The kernel has coverage for what asks for it: this module.
        words += ["KCOV_INSTRUMENT=y", "HOMA_DEBUG=y"]
    words += [*arguments, "modules"]
    if kernel.chroot:
        words = chroot.command(kernel.chroot, work, words)
    try:
        done = subprocess.run(
            ["setpriv", "--pdeathsig", "KILL", "nice", "-n", "5", *words],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", "MAKEFLAGS": ""},
            timeout=_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        raise Missing(f"{error.filename} is not installed") from None
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"{kernel.release}: the build has not ended") from None
    text = done.stderr.replace(f"{inside}/", "").replace(f"{work}/", "")
    found = sorted(work.glob("*.ko"))
    if done.returncode != 0:
        raise BuildFailed(f"{kernel.release}: {_complaint(text)}")
    if (strict or sparse) and _warnings(text):
        raise BuildFailed(f"{kernel.release}: {_complaint(_warnings(text))}")
    if not linked:
        return None
    if not found:
        raise BuildFailed(f"{kernel.release}: make built no module\n{text[-2000:]}")
    return found[0]


def _warnings(text: str) -> str:
    """Warnings of our own files and of linking, not those about headers or the machine."""
    found = []
    for line in text.splitlines():
        if line.startswith(("/", "./", "warning:")):
            continue
        if re.search(r"^\S+:.*warning:|WARNING: modpost|: error:", line):
            found.append(line)
    return "\n".join(found)


def _complaint(text: str) -> str:
    lines = text.strip().splitlines()
    hits = [i for i, x in enumerate(lines) if re.search(r"error[: ]|ERROR|warning:|WARNING", x)]
    return "\n".join(lines[max(0, hits[0] - 2) : hits[0] + 40] if hits else lines[-40:])
