# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where kernels, tools and builds are kept between runs, outside the source tree.

An entry is a folder that is complete or absent: it is made under another name and then
renamed. A lock per entry lets two runs share the work instead of doing it twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.vm.errors import VmError

_DONE = ".complete"


def root() -> Path:
    """The cache folder: $HOMA_VM_CACHE, /var/cache/homa-vm for root, else under the home."""
    named = os.environ.get("HOMA_VM_CACHE")
    if named:
        return _made(Path(named).resolve())
    if os.geteuid() == 0 and os.access("/var/cache", os.W_OK):
        return _made(Path("/var/cache/homa-vm"))
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return _made(Path(home) / "homa-vm")


def _made(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise VmError(
            f"cannot make the cache folder {path} ({error.strerror}); set HOMA_VM_CACHE"
        ) from None
    return path


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Nobody else works on `name` meanwhile."""
    path = root() / "locks" / f"{name.replace('/', '-')}.lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_complete(path: Path) -> bool:
    """True if the entry `path` was made to its end."""
    return (path / _DONE).exists()


def age(path: Path) -> float:
    """Seconds since the entry was made or last found to be the newest."""
    try:
        return time.time() - (path / _DONE).stat().st_mtime
    except OSError:
        return float("inf")


def confirm(path: Path) -> None:
    """The entry is still what would be made today."""
    (path / _DONE).touch()


def entry(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, made by `make` (into an empty folder) if it is not there."""
    path = root() / name
    if is_complete(path):
        return path
    with locked(name):
        if is_complete(path):
            return path
        scratch = path.with_name(f".{path.name}.new")
        remove(scratch)
        scratch.mkdir(parents=True)
        try:
            make(scratch)
            (scratch / _DONE).touch()
            remove(path)
            scratch.rename(path)
        except BaseException:
            remove(scratch)
            raise
    return path


def remove(path: Path) -> None:
    """Delete a folder if it is there; nothing may be mounted in it."""
    if path.is_dir() and not path.is_symlink():
        mounts = Path("/proc/self/mounts").read_text()
        if f" {path}/" in mounts:
            raise VmError(f"something is still mounted below {path}; unmount it")
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


def sweep(folder: str, keep: Path) -> None:
    """Delete the entries beside `keep` that nobody has used for a week."""
    for other in (root() / folder).iterdir():
        if other != keep and is_complete(other) and age(other) > 7 * 86400:
            with contextlib.suppress(OSError, VmError):
                remove(other)
