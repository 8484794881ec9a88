# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Finished runs on disk: a file each, there whole or not at all, found again by identity.

This is what makes an interrupted sweep go on where it was: a run that has its file is never done
again, and the file appears only when the run is finished (written beside, synced, renamed).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from lab import provenance
from lab.errors import LabError, UsageError
from lab.sim import spec as specs
from lab.sim.spec import Spec

_BESIDE = ".part-"


class Store:
    """Results of `build` in `folder`, which is made if need be."""

    def __init__(self, folder: Path, build: str) -> None:
        self.folder, self.build = folder, build
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot make the folder {folder}: {error.strerror}; give another with --out"
            ) from None

    def file(self, spec: Spec) -> Path:
        """Where the result of a normal() `spec` is or will be."""
        return self.folder / f"{specs.identity(spec, self.build)}.json"

    def get(self, spec: Spec) -> dict | None:
        """The result, or None if that run is not finished; a damaged file counts as none."""
        try:
            found = json.loads(self.file(spec).read_text())
        except (OSError, ValueError):
            return None
        result = found.get("result") if isinstance(found, dict) else None
        return result if isinstance(result, dict) else None

    def put(self, spec: Spec, result: dict) -> Path:
        """Keep a finished run."""
        if finished(result):
            target = self.file(spec)
            where = provenance.here()
            write(target, {"run": spec, "build": self.build, "where": where, "result": result})
            return target
        why = result.get("ended_by") or "interrupted"
        raise LabError(f"it ended early ({why}), so its result is not kept")

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others out while runs are made; what a killed predecessor left half is removed."""
        with (self.folder / ".lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LabError(
                    f"another run is at work in {self.folder}; wait for it or give another --out"
                ) from None
            for left in self.folder.glob(f"{_BESIDE}*"):
                left.unlink(missing_ok=True)
            yield


def finished(result: dict) -> bool:
    """Whether homa-sim measured all it was to measure, or saw that the load cannot be carried."""
    if result.get("interrupted", False):
        return False
    aborted = result.get("sim", {}).get("backlog", {}).get("aborted", False)
    return bool(aborted or result.get("complete", True))


def write(path: Path, document: object) -> None:
    """Write JSON to `path` whole or not at all; LabError if it cannot be."""
    beside = path.with_name(f"{_BESIDE}{os.getpid()}-{path.stem}")
    try:
        with beside.open("w") as out:
            json.dump(document, out)
            out.write("\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise LabError(f"cannot write {path}: {error.strerror}; give another --out") from None
