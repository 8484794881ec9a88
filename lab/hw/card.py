# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa-card: the process with the Verilated homa_nic that is a message NIC (hw/sim)."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.hw import environment
from lab.hw.blocks import BLOCKS, CLASH
from lab.paths import BUILD, ROOT

SIM = ROOT / "hw" / "sim"
MESSAGE = ROOT / "nic" / "message"
WIDTH = 512
SECONDS = 900


def build() -> Path:
    """Compile it unless it is there, or $HOMA_CARD names one; the program. MissingError or
    LabError."""
    if os.environ.get("HOMA_CARD"):
        return Path(os.environ["HOMA_CARD"])
    variables = environment.variables()
    sources = [SIM / "model.cpp", *sorted(SIM.glob("*.c")), MESSAGE / "message_check.c"]
    headers = [*SIM.glob("*.h"), *MESSAGE.glob("message_*.h"), ROOT / "hw" / "homa_nic_regs.h"]
    files = [*BLOCKS["nic"].sources(), *sources, *sorted(headers), Path(__file__)]
    text = environment.REQUIREMENTS.read_bytes() + b"".join(f.read_bytes() for f in files)
    folder = BUILD / "hw" / f"card-{hashlib.sha256(text).hexdigest()[:16]}"
    program = folder / "homa-card"
    with (BUILD / "hw" / ".card-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _compile(folder, sources, variables)
    return program


def _compile(folder: Path, sources: list[Path], variables: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    includes = [f"-I{place}" for place in (SIM, MESSAGE, ROOT / "hw")]
    objects = []
    for source in sources:
        if source.suffix != ".c":
            continue
        objects.append(folder / f"{source.stem}.o")
        command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]
        _run([*command, *includes, "-c", str(source), "-o", str(objects[-1])], variables)
    command = [str(environment.verilator() / "verilator"), "--cc", "--exe", "--build", "-j", "2"]
    command += ["-O3", "--trace", "--output-split", "0", "--x-initial", "unique", "-Wno-fatal"]
    command += [f"-D{CLASH}", f"-GWIDTH={WIDTH}", "--top-module", "homa_nic"]
    command += ["--Mdir", str(folder / "model")]
    command += ["-CFLAGS", f"-DMODEL_WIDTH={WIDTH} -I{SIM}", "-o", str(folder / "new")]
    # What runs in each cycle is worth optimizing; the rest is compiled once and used rarely.
    command += ["-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1"]
    command += [*map(str, BLOCKS["nic"].sources()), str(SIM / "model.cpp"), *map(str, objects)]
    _run(command, variables)
    (folder / "new").rename(folder / "homa-card")


def _run(command: list[str], variables: dict[str, str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=variables, timeout=SECONDS
    )
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise LabError(f"homa-card does not compile:\n{said}")
