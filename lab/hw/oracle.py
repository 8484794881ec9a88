# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The C code that says what the hardware should do, as a shared library."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.paths import BUILD, ROOT

INCLUDES = ("engine/plat/user", "engine/base", "engine/wire/homa", "hw/tb")
SOURCES = ("engine/wire/homa/homa_codec.c", "hw/tb/hw_oracle.c")
HEADERS = ("engine/wire/homa/homa_codec.h", "engine/wire/homa/homa_wire.h", "hw/tb/hw_oracle.h")


def build() -> Path:
    """Compile it unless it is there; the library. LabError."""
    text = b"".join((ROOT / name).read_bytes() for name in (*SOURCES, *HEADERS))
    folder = BUILD / "hw"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"oracle-{hashlib.sha256(text).hexdigest()[:16]}.so"
    if library.exists():
        return library
    scratch = library.with_suffix(".new")
    command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Werror", "-fPIC", "-shared"]
    command += [f"-I{ROOT / name}" for name in INCLUDES]
    command += [str(ROOT / name) for name in SOURCES]
    done = subprocess.run(
        [*command, "-o", str(scratch)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LabError(f"the oracle does not compile:\n{done.stderr}")
    scratch.rename(library)
    return library
