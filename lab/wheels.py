# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Private folders of Python wheels, made by the machine's own pip. Nothing is installed for anybody
else: only a process that has the folder in its PYTHONPATH sees it.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from functools import cache
from pathlib import Path

from lab.errors import LabError

PYTHON = "/usr/bin/python3"
_PIP = (
    *("-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--retries=1"),
    *("--timeout=30", "--disable-pip-version-check", "--no-input", "--no-warn-script-location"),
)


def site(folder: Path, requirements: Path, seconds: int) -> Path:
    """The folder with the wheels that `requirements` names, inside `folder`; made if need be, by pip,
    which has so many seconds. One process makes it, the others wait. LabError: pip's last words."""
    folder.mkdir(parents=True, exist_ok=True)
    found = folder / "site"
    stamp = found / ".requirements"
    wanted = f"{_version()}\n{requirements.read_text()}"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(found, ignore_errors=True)
            _install(found, requirements, seconds)
            stamp.write_text(wanted)
    return found


@cache
def _version() -> str:
    """Of the Python that the wheels are for, whichever runs this."""
    command = [PYTHON, "-c", "import sys; print(sys.version)"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError as error:
        raise LabError(f"{PYTHON} cannot be run: {error}") from None


def _install(folder: Path, requirements: Path, seconds: int) -> None:
    command = [PYTHON, *_PIP, "--target", str(folder), "-r", str(requirements)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        why = "" if done.returncode == 0 else (done.stderr.strip() or "nothing").splitlines()[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    if why:
        shutil.rmtree(folder, ignore_errors=True)
        raise LabError(why)
