# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The debug kernel: Debian's source of 6.1 with debug.config, kept by the hash of both.

It takes six to ten minutes on two cores, so a run that has none uses one only if asked to.
What remains in the cache is the image and what modules are built against, without sources.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lab.vm import apt, cache
from lab.vm.errors import BuildFailed, Missing
from lab.vm.kernels import DEBUG, SERIES, Kernel

CONFIG = Path(__file__).with_name("debug.config")
_PROGRAMS = ("gcc", "make", "flex", "bison", "bc", "xz")
_LIBRARIES = {"libelf-dev": "/usr/include/libelf.h"}
_TIMEOUT_S = 3600


def prepare(*, build: bool = True) -> Kernel:
    """The debug kernel; Missing if it is not in the cache and `build` is false."""
    config = CONFIG.read_bytes()
    name, version = _version()
    digest = hashlib.sha256(config + version.encode()).hexdigest()[:16]
    folder = cache.root() / "kernels" / f"debug-{digest}"
    if not cache.is_complete(folder):
        if not build:
            raise Missing("it is not built yet; ./homa test --vm-debug builds it (ten minutes)")
        _check_tools()
        folder = cache.entry(f"kernels/debug-{digest}", lambda into: _make(name, into))
        _store_version(version)
    cache.confirm(folder)
    cache.sweep("kernels", folder)
    release = (folder / "include/config/kernel.release").read_text().strip()
    return Kernel(DEBUG, release, folder / "arch/x86/boot/bzImage", folder)


def _version() -> tuple[str, str]:
    """The package of the source and its version; without network what was built last."""
    known = cache.root() / "kernels" / "debug.version"
    series = SERIES["6.1"]
    try:
        return apt.Apt(series.suites).newest(r"linux-source-6\.1")
    except Missing:
        if known.exists():
            return "linux-source-6.1", known.read_text().strip()
        raise


def _store_version(version: str) -> None:
    known = cache.root() / "kernels" / "debug.version"
    scratch = known.with_suffix(f".{os.getpid()}")
    scratch.write_text(version + "\n")
    scratch.rename(known)


def _check_tools() -> None:
    absent = [p for p in _PROGRAMS if not shutil.which(p)]
    absent += [p for p, file in _LIBRARIES.items() if not Path(file).exists()]
    if absent:
        raise Missing(f"building the debug kernel needs {', '.join(absent)}: please install")


def _make(package: str, into: Path) -> None:
    print("homa: building the debug kernel, about ten minutes", file=sys.stderr, flush=True)
    series = SERIES["6.1"]
    source = apt.Apt(series.suites)
    apt.unpack(source.download([package], into / "packages"), into / "source")
    (into / "packages").rmdir()
    archive = next((into / "source/usr/src").glob("linux-source-*.tar.xz"))
    _run(["tar", "-xJf", str(archive), "--strip-components=1", "-C", str(into)], into, "unpack")
    shutil.rmtree(into / "source")
    _run(["make", f"KCONFIG_ALLCONFIG={CONFIG}", "allnoconfig"], into, "configure")
    _check_config((into / ".config").read_text())
    _run(["make", f"-j{os.cpu_count() or 2}", "bzImage", "modules"], into, "build")
    _prune(into)


def _run(command: list[str], folder: Path, what: str) -> None:
    log = folder / f".{what}.log"
    with log.open("wb") as out:
        done = subprocess.run(
            ["setpriv", "--pdeathsig", "TERM", "nice", "-n", "10", *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=_TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C", "KBUILD_BUILD_TIMESTAMP": "2026-01-01"},
        )
    if done.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise BuildFailed(f"debug kernel: {what} failed:\n{tail}")


def _check_config(text: str) -> None:
    """Every line of the fragment took; Kconfig drops what lacks a dependency silently."""
    taken = set(text.splitlines())
    wanted = re.findall(r"^(?:CONFIG_\S+=.*|# CONFIG_\w+ is not set)$", CONFIG.read_text(), re.M)
    lost = [line for line in wanted if line not in taken]
    if lost:
        raise BuildFailed(f"debug kernel: not taken from debug.config: {', '.join(lost)}")


def _prune(folder: Path) -> None:
    """Leave what a module's build and a boot need: some 100 MB of 3 GB."""
    for top in folder.iterdir():
        if top.is_dir() and top.name not in ("arch", "include", "scripts", "tools"):
            _remove_files(top, lambda p: not p.name.startswith(("Kconfig", "Makefile", "Kbuild")))
    for inside, kept in (
        ("arch", ("x86",)),
        ("tools", ("objtool", "include", "build", "scripts", "lib")),
    ):
        for path in (folder / inside).iterdir():
            if path.is_dir() and path.name not in kept:
                shutil.rmtree(path)
    for top in ("arch", "include", "tools"):
        _remove_files(folder / top, lambda p: p.suffix in (".o", ".a", ".cmd"))
    for path in [*folder.glob("vmlinux*"), *folder.glob(".tmp_*"), *folder.glob("*.o")]:
        if path.is_file():
            path.unlink()


def _remove_files(top: Path, unwanted: Callable[[Path], bool]) -> None:
    for path in top.rglob("*"):
        if not path.is_dir() and unwanted(path):
            path.unlink()
