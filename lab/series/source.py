# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The files of a kernel's source that the series changes, and the kernel's checkpatch."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.series import layout
from lab.vm import apt, cache
from lab.vm.kernels import SERIES

SERIES_NAME = "6.1"
_PACKAGE = r"linux-source-6\.1"
_WANTED = (
    *layout.HOOKED,
    "scripts/checkpatch.pl",
    "scripts/spelling.txt",
    "scripts/const_structs.checkpatch",
)


def debian() -> Path:
    """Those files of Debian's source of Linux 6.1, fetched (140 MB) once; Missing."""
    tag = hashlib.sha256(" ".join(_WANTED).encode()).hexdigest()[:8]
    return cache.entry(f"sources/{SERIES_NAME}-{tag}", _fetch)


def _fetch(into: Path) -> None:
    mirror = apt.Apt(SERIES[SERIES_NAME].suites)
    name, _ = mirror.newest(_PACKAGE)
    for package in mirror.download([name], into):
        inner = f"./usr/src/{name}.tar.xz"
        wanted = " ".join(f"{name}/{path}" for path in _WANTED)
        script = (
            f'dpkg-deb --fsys-tarfile "$1" | tar -xO {inner} | xz -dc '
            f'| tar -x -C "$2" --strip-components=1 {wanted}'
        )
        words = ["sh", "-ec", script, "sh", str(package), str(into)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError(f"cannot unpack {package.name}: {done.stderr.strip()}")
        package.unlink()


def base(tree: Path) -> dict[str, str]:
    """The files of a kernel's tree that the series changes."""
    missing = [name for name in layout.HOOKED if not (tree / name).is_file()]
    if missing:
        raise LabError(f"{tree} is no kernel's source: it has no {missing[0]}")
    return {name: (tree / name).read_text() for name in layout.HOOKED}
