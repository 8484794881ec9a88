# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Private folders of Python wheels, made by the machine's own pip. Nothing is installed for anybody
else: only a process that has the folder in its PYTHONPATH sees it.

A folder is never changed once it is there: other wheels, or those of another Python, are in another
one beside it. So nothing goes away under a program that uses them, and `site` is a link to those
that were asked for last, for people. Folders that nobody uses any more are for people to delete.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
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
    wanted = f"{_version()}\n{requirements.read_text()}"
    found = folder / f"site-{hashlib.sha256(wanted.encode()).hexdigest()[:16]}"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            new = folder / "site.new"
            shutil.rmtree(new, ignore_errors=True)
            _install(new, requirements, seconds)
            new.rename(found)
        _link(folder / "site", found.name)
    return found


def _link(link: Path, target: str) -> None:
    """A link to the folder of this name beside it, in one step; what was a folder of an older tree
    goes aside."""
    if link.is_symlink() and os.readlink(link) == target:
        return
    if link.is_dir() and not link.is_symlink():
        link.rename(link.with_name(f"site-before-{target.removeprefix('site-')}"))
    new = link.with_name("site.link")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(link)


@cache
def _version() -> str:
    """Of the Python that the wheels are for, whichever runs this."""
    command = [PYTHON, "-c", "import sys; print(sys.version)"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
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
