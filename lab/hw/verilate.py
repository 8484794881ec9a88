# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The program of a block: Verilator makes C++ of it, which is compiled with cocotb's main program.

What Verilator adds to every program takes longer to compile than most blocks do, so it is compiled
once for all of them. Of a block only those signals can be seen from outside that a test looks at:
the more are seen, the less Verilator may simplify.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.hw.blocks import CLASH, Block
from lab.hw.environment import REQUIREMENTS
from lab.paths import BUILD

# Of every program, whatever the block is.
RUNTIME = ("verilated", "verilated_vpi", "verilated_dpi", "verilated_threads")
OPTIMIZE = "-O1"
SECONDS = 1800


def program(
    block: Block, size: int, folder: Path, root: Path, *, waves: bool, strict: bool
) -> None:
    """Make it in `folder`, of the sources in `root`; all signals are seen if there are `waves`, and a
    warning is an error if it is `strict`. Run by the environment's Python. LabError."""
    from cocotb_tools import config

    folder.mkdir(parents=True, exist_ok=True)
    seen = folder / "seen.vlt"
    seen.write_text(_seen(block))
    command = ["verilator", "--cc", "--exe", "--Mdir", str(folder), "--prefix", "Vtop"]
    command += ["--top-module", block.top, f"-G{block.parameter}={size}", "-o", block.top]
    command += [f"-D{CLASH}", "--vpi", "-O3", "--x-initial", "unique", "--output-split", "0"]
    command += ["-Wall" if strict else "-Wno-fatal", "-CFLAGS", OPTIMIZE]
    command += ["--trace", "--public-flat-rw"] if waves else []
    libraries = config.libs_dir
    command += ["-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator"]
    command += [str(config.share_dir / "lib" / "verilator" / "verilator.cpp"), str(seen)]
    _run([*command, *map(str, block.sources(root))])
    make = ["make", "-C", str(folder), "-f", "Vtop.mk", f"VM_TRACE={int(waves)}"]
    _runtime(folder, make)
    _run(make)


def _seen(block: Block) -> str:
    """What Verilator is told about signals: a block's own are seen, and of others the named ones."""
    rows = ["`verilator_config", f'public_flat_rw -module "{block.top}" -var "*"']
    rows += [f'public_flat_rw -module "{module}" -var "{name}"' for module, name in block.seen]
    return "\n".join(rows) + "\n"


def _runtime(folder: Path, make: list[str]) -> None:
    """The objects of RUNTIME in `folder`, compiled if no program has had them before."""
    objects = [f"{name}.o" for name in RUNTIME]
    text = f"{REQUIREMENTS.read_text()}{OPTIMIZE}{make[-1]}"
    kept = BUILD / "hw" / f"runtime-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    with (BUILD / "hw" / ".runtime-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _run([*make, "-j", "2", *objects])
            new = kept.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            for name in objects:
                shutil.copy(folder / name, new)
            new.rename(kept)
    for name in objects:
        shutil.copy(kept / name, folder)


def _run(command: list[str]) -> None:
    """Show what it says. LabError."""
    if subprocess.run(command, timeout=SECONDS, check=False).returncode:
        raise LabError(f"{command[0]} failed")
