# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Builds bench/kernel: the program that runs in guests, and the emulator's plugin.

Both take a second to compile, need nothing but a C compiler, and are kept by the hash of
their sources.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from lab.vm import BuildFailed, Missing, cache, tools

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "bench" / "kernel"
_PROGRAM = ("main.c", "tcp_udp.c", "homa.c", "cores.c")
# From this QEMU on plugins copy instruction bytes out, and older plugins are refused.
_NEW_PLUGINS = (9, 1)


def bench_program() -> Path:
    """homa-kernel-bench without libraries, for guests."""
    words = ["-static", "-pthread", "-O2", "-D_GNU_SOURCE", f"-I{ROOT / 'abi'}"]
    return _compiled("homa-kernel-bench", [SOURCES / name for name in _PROGRAM], words)


def counting_plugin(name: str = "insn_count") -> Path:
    """A plugin, for the emulator that lab.vm takes: insn_count, or core_count for several CPUs."""
    version = tuple(int(part) for part in tools.qemu().version.split(".")[:2])
    api = 4 if version >= _NEW_PLUGINS else 1
    words = ["-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", f"-DPLUGIN_API={api}"]
    return _compiled(f"{name}.so", [SOURCES / f"{name}.c"], words)


def slow_clock() -> Path:
    """What core_count wants to be preloaded."""
    words = ["-shared", "-fPIC", "-O2", "-D_GNU_SOURCE"]
    return _compiled("slow_clock.so", [SOURCES / "slow_clock.c"], words)


def go_program(folder: Path) -> Path:
    """gohttp, static, made in `folder`; Missing where there is no Go."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.access(go, os.X_OK):
        raise Missing("Go is not installed")
    made = folder / "gohttp"
    done = subprocess.run(
        [go, "build", "-o", str(made), str(SOURCES / "gohttp.go")],
        env={**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off"},
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise BuildFailed(f"gohttp: {done.stderr.strip()[-2000:]}")
    return made


def _compiled(name: str, sources: list[Path], words: list[str]) -> Path:
    compiler = os.environ.get("CC") or "cc"
    if not shutil.which(compiler.split()[0]):
        raise Missing(f"{compiler} is not installed")
    digest = hashlib.sha256(repr((compiler, words)).encode())
    for path in [*sources, *sorted(SOURCES.glob("*.h")), ROOT / "abi" / "homa_socket.h"]:
        digest.update(path.read_bytes())

    def make(into: Path) -> None:
        command = [*compiler.split(), *words, "-Wall", "-Wextra", "-o", str(into / name)]
        done = subprocess.run(
            [*command, *map(str, sources)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise BuildFailed(f"{name}: {done.stderr.strip()[-2000:]}")

    folder = cache.entry(f"bench/{name}-{digest.hexdigest()[:16]}", make)
    for other in folder.parent.glob(f"{name}-*"):
        if other != folder and cache.age(other) > 86400:
            cache.remove(other)
    cache.confirm(folder)
    return folder / name
