# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The emulator and the guest's shell: the machine's own if they will do, else unpacked ones.

QEMU below 8 has a fault in the emulation of 16-byte compare-and-exchange that stops a 6.12
kernel in one boot of four, so an older one is passed over for the backport.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.vm import apt, cache
from lab.vm.errors import Missing

_OLDEST = 8


@dataclass(frozen=True)
class Qemu:
    """An emulator that runs: the words that start it, what must be in its environment."""

    words: tuple[str, ...]
    env: dict[str, str]
    version: str


def qemu() -> Qemu:
    """QEMU, the installed one if it is new enough; Missing."""
    installed = shutil.which("qemu-system-x86_64")
    if installed:
        found = _try((installed,), {})
        if found and int(found.version.split(".")[0]) >= _OLDEST:
            return found
    folder = cache.root() / "tools" / "qemu"
    found = _unpacked(folder) if cache.is_complete(folder) else None
    if found is None:
        with cache.locked("tools-qemu-check"):
            if cache.is_complete(folder) and _unpacked(folder) is None:
                cache.remove(folder)  # its libraries left the machine since
            folder = cache.entry("tools/qemu", _fetch_qemu)
        found = _unpacked(folder)
    if found is None:
        raise Missing("the unpacked QEMU does not run here; install qemu-system-x86, 8 or newer")
    return found


def _unpacked(folder: Path) -> Qemu | None:
    libraries = ":".join(str(folder / p / "x86_64-linux-gnu") for p in ("usr/lib", "lib"))
    words = (
        str(folder / "usr/bin/qemu-system-x86_64"),
        *("-L", str(folder / "usr/share/qemu")),
        *("-L", str(folder / "usr/share/seabios")),
    )
    return _try(words, {"LD_LIBRARY_PATH": libraries})


def _try(words: tuple[str, ...], env: dict[str, str]) -> Qemu | None:
    try:
        done = subprocess.run(
            [*words, "--version"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **env},
        )
    except OSError:
        return None
    match = re.search(r"version (\d[\d.]*)", done.stdout)
    return Qemu(words, env, match.group(1)) if done.returncode == 0 and match else None


def _suites() -> tuple[str, ...]:
    """This Debian's suites, backports last."""
    match = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.M)
    name = match.group(1) if match else "stable"
    return (name, f"{name}-updates", f"{name}-security", f"{name}-backports")


def _fetch_qemu(into: Path) -> None:
    if not any(s.debian for s in apt.configured()):
        raise Missing("qemu-system-x86_64 is not installed (or older than 8)")
    suites = _suites()
    names = ["qemu-system-x86", "qemu-system-data", "seabios"]
    packages = apt.Apt(suites).download_missing(names, into / "packages", suites[-1])
    apt.unpack(packages, into)
    (into / "packages").rmdir()
    for waste in ("usr/share/doc", "usr/share/man", "usr/share/icons", "usr/share/locale"):
        shutil.rmtree(into / waste, ignore_errors=True)


def busybox() -> Path:
    """A busybox that needs no libraries; Missing."""
    installed = shutil.which("busybox")
    if installed and _is_static(Path(installed)):
        return Path(installed)
    return cache.entry("tools/busybox", _busybox_into()) / "busybox"


def _is_static(program: Path) -> bool:
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    return "=>" not in done.stdout


def _busybox_into() -> Callable[[Path], None]:
    def fetch(into: Path) -> None:
        if not any(s.debian for s in apt.configured()):
            raise Missing("busybox is not installed; install busybox-static")
        apt.unpack(apt.Apt(_suites()).download(["busybox-static"], into / "packages"), into)
        found = [*into.glob("bin/busybox"), *into.glob("usr/bin/busybox")]
        found[0].rename(into / "busybox")

    return fetch
