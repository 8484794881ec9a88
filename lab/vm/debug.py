# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Kernels that notice mistakes: Debian's source of 6.1 with guest.config and debug.config (KASAN,
lockdep, kmemleak) or kcsan.config (data races), kept by the hash of all.

One takes six to fifteen minutes on two cores, so a run that has none uses one only if asked to.
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
from lab.vm.kernels import BUILT, SERIES, Kernel

_HERE = Path(__file__).parent
_PROGRAMS = ("gcc", "make", "flex", "bison", "bc", "xz")
_LIBRARIES = {"libelf-dev": "/usr/include/libelf.h"}
_TIMEOUT_S = 3600
# Parts of the kernel that are left out of KASAN, because what notices mistakes calls them many
# times for each packet: they follow stacks and keep account of locks.
_UNCHECKED = tuple(f"KASAN_SANITIZE_{name}.o=n" for name in ("unwind_frame", "lockdep"))
# KASAN keeps the callers of each allocation and release, so many of them, and not 64.
_CALLERS = 12


def config(name: str) -> str:
    """What the kernel `name` (one of BUILT) adds to "make allnoconfig"."""
    return (_HERE / "guest.config").read_text() + (_HERE / f"{name}.config").read_text()


def prepare(name: str, *, build: bool = True) -> Kernel:
    """The kernel `name`, one of BUILT; Missing if it is not in the cache and `build` is false."""
    package, version = _version()
    what = config(name) + version + " ".join(_UNCHECKED) + str(_CALLERS)
    digest = hashlib.sha256(what.encode()).hexdigest()[:16]
    folder = cache.root() / "kernels" / f"{name}-{digest}"
    if not cache.is_complete(folder):
        if not build:
            raise Missing(
                f"it is not built yet; ./homa test {BUILT[name]} builds it (six to fifteen minutes)"
            )
        _check_tools(name)
        folder = cache.entry(f"kernels/{name}-{digest}", lambda into: _make(name, package, into))
        _store_version(version)
    cache.confirm(folder)
    cache.sweep("kernels", folder)
    release = (folder / "include/config/kernel.release").read_text().strip()
    return Kernel(name, release, folder / "arch/x86/boot/bzImage", folder, folder / "modules")


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


def _check_tools(name: str) -> None:
    absent = [p for p in _PROGRAMS if not shutil.which(p)]
    absent += [p for p, file in _LIBRARIES.items() if not Path(file).exists()]
    if absent:
        raise Missing(f"building the {name} kernel needs {', '.join(absent)}: please install")


def _make(name: str, package: str, into: Path) -> None:
    print(f"homa: building the {name} kernel, six to fifteen minutes", file=sys.stderr, flush=True)
    source = apt.Apt(SERIES["6.1"].suites)
    apt.unpack(source.download([package], into / "packages"), into / "source")
    (into / "packages").rmdir()
    archive = next((into / "source/usr/src").glob("linux-source-*.tar.xz"))
    _run(name, "unpack", into, ["tar", "-xJf", str(archive), "--strip-components=1"])
    shutil.rmtree(into / "source")
    _keep_fewer_callers(into / "mm/kasan/kasan.h")
    wanted = into / ".wanted.config"
    wanted.write_text(config(name))
    _run(name, "configure", into, ["make", f"KCONFIG_ALLCONFIG={wanted}", "allnoconfig"])
    lost = not_taken(config(name), (into / ".config").read_text())
    if lost:
        raise BuildFailed(f"{name} kernel: not taken from its configuration: {', '.join(lost)}")
    jobs = f"-j{os.cpu_count() or 2}"
    _run(name, "build", into, ["make", jobs, *_UNCHECKED, "bzImage", "modules"])
    _keep_modules(into)
    _prune(into)


def _keep_fewer_callers(header: Path) -> None:
    text, number = re.subn(
        r"^(#define KASAN_STACK_DEPTH\s+)\d+$", rf"\g<1>{_CALLERS}", header.read_text(), flags=re.M
    )
    if number != 1:
        raise BuildFailed(f"{header.name} does not say how many callers KASAN keeps")
    header.write_text(text)


def _run(name: str, what: str, folder: Path, command: list[str]) -> None:
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
        raise BuildFailed(f"{name} kernel: {what} failed:\n{tail}")


def not_taken(wanted: str, taken: str) -> list[str]:
    """Lines of a fragment that did not take; Kconfig drops what lacks a dependency silently."""
    lines = re.findall(r"^(?:CONFIG_\S+=.*|# CONFIG_\w+ is not set)$", wanted, re.M)
    have = set(taken.splitlines())
    return [line for line in lines if line not in have]


def _keep_modules(folder: Path) -> None:
    """The few modules that are not in the image go where guests look for them, with the list of the
    others."""
    kept = folder / "modules"
    kept.mkdir()
    for module in [path for path in folder.rglob("*.ko") if path.parent != kept]:
        shutil.copy2(module, kept)
    shutil.copy2(folder / "modules.builtin", kept)


def _prune(folder: Path) -> None:
    """Leave what a module's build and a boot need: some 100 MB of 3 GB."""
    for top in folder.iterdir():
        if top.is_dir() and top.name not in ("arch", "include", "modules", "scripts", "tools"):
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
