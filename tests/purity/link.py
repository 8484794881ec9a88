# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The engine compiled as a kernel would compile it and linked alone: what stays
undefined is what it asks of the outside world. With -m32 as well, because a
64-bit division is silent on x86-64 and a call into libgcc on 32 bits."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source import ENGINE_FOLDERS, Skip, Tree

ALLOWED = {"memcpy", "memset", "memmove", "memcmp"}
ALLOWED_PREFIX = "homa_plat_"
# The user seam's 64-bit atomics: inline on 64 bits, in libatomic on 32 without SSE.
ALLOWED_MT_32 = re.compile(r"__atomic_\w+_8$")
# Of functions that files of the engine share; tas_ is that of engine/tcp.
SYMBOL_PREFIX = ("homa_", "tas_")
SEAMS = {"st": [], "mt": ["-DHOMA_MT"], "mt_lock_check": ["-DHOMA_MT", "-DHOMA_LOCK_CHECK"]}
FLAGS = (
    "-std=gnu11 -O2 -c -ffreestanding -mgeneral-regs-only -fno-strict-aliasing -fno-pic -fno-pie"
    " -fno-stack-protector -U_FORTIFY_SOURCE -Wall -Wextra -Wvla -Wframe-larger-than=1024"
    " -Wmissing-prototypes -Wstrict-prototypes -Werror"
).split()


def compile_all(tree: Tree, flags: list[str], out: Path) -> tuple[list[Path], list[str]]:
    """Compile each engine source; returns objects and complaints."""
    sources = tree.engine_sources()
    if not sources:
        raise Skip("there is no engine source yet")

    def one(source: Path) -> tuple[Path, str]:
        target = out / (tree.name(source).replace("/", "_") + ".o")
        command = ["gcc", *FLAGS, *flags, *tree.engine_includes(), "-o", str(target), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return target, "" if done.returncode == 0 else done.stderr.strip()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, sources))
    errors = [e for _, e in results if e]
    return [t for t, e in results if not e], errors


def nm(flags: list[str], file: Path) -> list[str]:
    done = subprocess.run(["nm", *flags, str(file)], capture_output=True, text=True, check=True)
    return [line.split()[-1] for line in done.stdout.splitlines() if line.strip()]


def _allowed(symbol: str, seam: str, bits: int) -> bool:
    if symbol in ALLOWED or symbol.startswith(ALLOWED_PREFIX):
        return True
    return bits == 32 and seam != "st" and ALLOWED_MT_32.match(symbol) is not None


def check_link(tree: Tree, seam: str, bits: int) -> list[str]:
    """Nothing but memcpy and friends and the seam may stay undefined."""
    if not shutil.which("gcc"):
        raise Skip("there is no gcc")
    with tempfile.TemporaryDirectory(prefix="homa-purity-") as scratch:
        out = Path(scratch)
        word = ["-m32"] if bits == 32 else []
        objects, errors = compile_all(tree, SEAMS[seam] + word, out)
        if errors:
            return errors
        whole = out / "engine.o"
        emulation = ["-m", "elf_i386"] if bits == 32 else []
        done = subprocess.run(
            ["ld", "-r", *emulation, "-o", str(whole), *map(str, objects)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return [done.stderr.strip()]
        problems = [
            f"undefined symbol {s}: the engine may not call out"
            for s in nm(["-u"], whole)
            if not _allowed(s, seam, bits)
        ]
        problems += [
            f"symbol {s} lacks the prefix {' or '.join(SYMBOL_PREFIX)}"
            for s in nm(["-g", "--defined-only"], whole)
            if not s.startswith(SYMBOL_PREFIX)
        ]
        return problems


def check_listed(tree: Tree) -> list[str]:
    """A file that the build does not know is a file that no test reaches."""
    build = tree.root / "engine/meson.build"
    folder_lists = [tree.root / "engine" / f / "meson.build" for f in ENGINE_FOLDERS]
    text = "".join(f.read_text() for f in [build, *folder_lists] if f.exists())
    return [
        f"{tree.name(s)} is not in engine/meson.build"
        for s in tree.engine_sources()
        if not re.search(rf"['/]{re.escape(s.name)}'", text)
    ]


def check_sparse(tree: Tree, seam: str) -> list[str]:
    """Endian types are not mixed with plain integers."""
    if not shutil.which("sparse"):
        raise Skip("sparse is not installed")
    if not tree.engine_sources():
        raise Skip("there is no engine source yet")
    problems = []
    for source in tree.engine_sources():
        command = ["sparse", "-D__CHECKER__", "-std=gnu11"]
        command += ["-Wbitwise", "-Wno-decl", "-Wno-cast-truncate"]
        done = subprocess.run(
            [*command, *SEAMS[seam], *tree.engine_includes(), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        problems += [
            line.replace(f"{tree.root}/", "")
            for line in (done.stdout + done.stderr).splitlines()
            if ": warning:" in line or ": error:" in line
        ]
    return problems
