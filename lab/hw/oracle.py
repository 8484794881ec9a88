# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The C code that says what the hardware should do, as a shared library."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.paths import BUILD, ROOT

FOLDERS = ("engine/base", "engine/link", "engine/wire/homa", "engine/homa", "hw/tb")
PLAT = "engine/plat/user"
# Whole hosts, for the tests with engines at both ends; without the tests of that folder.
HOSTS = "tests/pair"


def build() -> Path:
    """Compile it unless it is there; the library. LabError."""
    folders = [ROOT / name for name in (PLAT, *FOLDERS, HOSTS)]
    files = sorted(f for folder in folders for f in folder.glob("*.[chd]*"))
    files = [f for f in files if not f.name.startswith("test_")]
    sources = [f for f in files if f.suffix == ".c" and f.parent != ROOT / PLAT]
    text = b"".join(f.read_bytes() for f in files)
    folder = BUILD / "hw"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"oracle-{hashlib.sha256(text).hexdigest()[:16]}.so"
    with (folder / ".oracle-lock").open("w") as lock:
        # Several simulations begin at the same time, and one of them compiles it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            _compile(library, folders, sources)
    return library


def _compile(library: Path, folders: list[Path], sources: list[Path]) -> None:
    scratch = library.with_suffix(f".{os.getpid()}.new")
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Werror", "-fPIC", "-shared"]
    command += [f"-I{folder}" for folder in folders]
    command += [str(ROOT / PLAT / "assert.c"), *map(str, sources)]
    done = subprocess.run(
        [*command, "-o", str(scratch)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LabError(f"the oracle does not compile:\n{done.stderr}")
    scratch.rename(library)
