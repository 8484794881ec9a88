# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Copies of the tree in which mutants are compiled, one for each that is looked at at a time.

A copy is kept from run to run, so only what a patch changes is compiled, without link-time
optimisation. Files that are the same keep their time of change.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.paths import ROOT

_SKIPPED = {"__pycache__", "out", "subprojects"}
OPTIONS = ("-Doptimization=1", "-Ddebug=false", "-Db_lto=false")


class BuildError(LabError):
    """A tree that does not compile; the message is the end of the compiler's output."""


def sources(root: Path, *folders: str) -> list[Path]:
    """The files of the tree, or of some folders of it, relative and in order; no builds."""
    found = []
    for top in folders or (".",):
        for folder, inside, names in os.walk(root / top):
            at = Path(folder).relative_to(root)
            inside[:] = [
                name
                for name in inside
                if name not in _SKIPPED
                and not name.startswith(".")
                and not (at == Path(".") and name.startswith("build"))
            ]
            found += [at / name for name in names]
    return sorted(found)


def digest(root: Path, *folders: str) -> str:
    """Of the contents of those folders, but for the patches: each result is of one."""
    sha = hashlib.sha256()
    for name in sources(root, *folders):
        if name.suffix == ".patch":
            continue
        sha.update(f"{name}\0".encode())
        sha.update(hashlib.sha256((root / name).read_bytes()).digest())
    return sha.hexdigest()


class Copy:
    """One copy of `root` under `folder`, configured there."""

    def __init__(self, folder: Path, root: Path = ROOT, jobs: int = 1) -> None:
        self.root = root
        self.tree = folder / "tree"
        self.build = folder / "build"
        self.jobs = jobs
        self._original: dict[str, bytes] = {}

    def prepare(self) -> None:
        """As the original is now, and configured; BuildError."""
        wanted = sources(self.root)
        for name in wanted:
            self._put(name, (self.root / name).read_bytes())
            shutil.copymode(self.root / name, self.tree / name)
        for name in set(sources(self.tree)) - set(wanted):
            (self.tree / name).unlink()
        if not (self.build / "build.ninja").exists():
            shutil.rmtree(self.build, ignore_errors=True)
            _run(["meson", "setup", *OPTIONS, str(self.build), str(self.tree)])
        # A test that is new has a target only then.
        _run(["ninja", "-C", str(self.build), "build.ninja"])

    def _put(self, name: Path, content: bytes) -> None:
        path = self.tree / name
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def targets(self) -> list[str]:
        """Paths of all executables in the build directory."""
        said = _run(["ninja", "-C", str(self.build), "-t", "targets", "all"])
        return [
            line.partition(":")[0]
            for line in said.splitlines()
            if "_LINKER" in line.partition(":")[2]
        ]

    def make(self, files: dict[str, str], targets: list[str]) -> None:
        """Compile with `files` in place of those of prepare(); BuildError."""
        for name in set(self._original) - set(files):
            self._put(Path(name), self._original.pop(name))
        for name, text in files.items():
            self._original.setdefault(name, (self.tree / name).read_bytes())
            self._put(Path(name), text.encode())
        _run(["ninja", f"-j{self.jobs}", "-C", str(self.build), *targets])


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        errors = [line for line in said if "error:" in line or "ERROR" in line]
        raise BuildError("\n".join(errors[:5] or said[-10:]))
    return done.stdout
