# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Files that a command writes: refused before it measures, written after it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from lab.errors import LabError, UsageError

JSON_HELP = "Write everything that was measured to this file."


def check_output(path: Path | None, option: str) -> None:
    """UsageError if `path` cannot be written: better before a long measurement than after it."""
    if path is None:
        return
    folder = path.parent
    if (
        path.is_dir()
        or not folder.is_dir()
        or not os.access(path if path.exists() else folder, os.W_OK)
    ):
        raise UsageError(
            f"{option} {path} cannot be written; name a file in a folder that exists and is yours"
        )


def write_json(path: Path, document: object) -> None:
    """Write `document` to `path`; LabError if that is impossible."""
    try:
        path.write_text(json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise LabError(
            f"cannot write {path}: {error.strerror}; name another file with --json"
        ) from None
