# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the tests of installing share: one installation, and the programs' place."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "tests/packaging")]


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All Debian packages by name, made once by packaging/deb.py, without optimisation."""
    import deb

    for tool in ("dpkg-deb", "dpkg-shlibdeps"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed (Debian package dpkg-dev)")
    # Parts of one run of the tests share what the first of them makes.
    shared = os.environ.get("HOMA_PACKAGES")
    folder = Path(shared) if shared else tmp_path_factory.mktemp("deb")
    # The build folder stays, so that only the first run compiles everything.
    builds = Path(os.environ.get("HOMA_BUILD") or folder) / "packaging"
    builds.mkdir(parents=True, exist_ok=True)
    with (builds / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "all").exists():
            deb.make(folder / "work", folder / "out", "debug", builds / "tree")
            (folder / "all").touch()
    return {path.name.partition("_")[0]: path for path in (folder / "out").glob("*.deb")}


@pytest.fixture(scope="session")
def tree(packages: dict[str, Path]) -> Path:
    """What `DESTDIR=... meson install` with prefix /usr made."""
    return next(iter(packages.values())).parents[1] / "work/root"


@pytest.fixture(scope="session")
def multiarch(packages: dict[str, Path]) -> str:
    done = subprocess.run(
        ["dpkg-architecture", "-qDEB_HOST_MULTIARCH"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment without our own variables."""
    return {k: v for k, v in os.environ.items() if not k.startswith("HOMA_")}
