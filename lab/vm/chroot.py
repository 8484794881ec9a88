# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A small Debian in a folder: for kernels that need a newer compiler than this machine has, and
for other tools that it has none of.

Commands run in it in mount and process namespaces of their own, so that nothing stays mounted
however they end.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from lab.vm import apt, cache
from lab.vm.errors import Missing
from lab.vm.kernels import Series

_PARTS = r"(?:linux-headers-|gcc-[0-9]+).*"


def prepare(release: str, series: Series) -> Path:
    """A system that has the headers of `release` and the compiler they ask for; Missing."""
    return cache.entry(f"chroots/{release}", lambda into: _bootstrap(release, series, into))


def with_packages(name: str, suite: str, packages: list[str]) -> Path:
    """A system of that suite with those packages, kept as `name`; Missing."""
    return cache.entry(f"chroots/{name}", lambda into: _debootstrap(suite, packages, into))


def _bootstrap(release: str, series: Series, into: Path) -> None:
    headers = f"linux-headers-{release}"
    source = apt.Apt(series.suites)
    compilers = [n for n in source.depends(headers, _PARTS) if n.startswith("gcc-")]
    gcc = next((re.match(r"gcc-\d+", n).group() for n in compilers), "gcc")
    _debootstrap(series.suites[0], [gcc, *compilers, "make", "kmod", headers], into)


def _debootstrap(suite: str, packages: list[str], into: Path) -> None:
    if os.geteuid() != 0:
        raise Missing("what this machine lacks is installed with debootstrap, as root only")
    if not shutil.which("debootstrap"):
        raise Missing("debootstrap is not installed")
    command = [
        "debootstrap",
        "--variant=minbase",
        f"--keyring={apt.KEYRING}",
        f"--include={','.join(sorted(set(packages)))}",
    ]
    # An older debootstrap may not know the suite; every newer suite is made like sid.
    script = Path("/usr/share/debootstrap/scripts")
    done = subprocess.run(
        [*command, suite, str(into), apt.mirror(), str(script / "sid")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode != 0:
        lines = [x for x in (done.stdout + done.stderr).splitlines() if x.startswith(("E:", "W:"))]
        raise Missing(f"debootstrap of {suite} failed: {(lines or ['no reason given'])[-1]}")
    for waste in ("var/cache/apt", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(into / waste, ignore_errors=True)
    (into / "build").mkdir()


def command(root: Path, work: Path, words: list[str]) -> list[str]:
    """`words` as a command inside `root`, where `work` is /build."""
    script = (
        'mount -t proc proc "$0/proc" && mount --bind "$1" "$0/build" && root=$0 && shift 1 && '
        'exec chroot "$root" "$@"'
    )
    shell = ["sh", "-c", script, str(root), str(work), *words]
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--", *shell]
