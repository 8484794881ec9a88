# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Results that the repository keeps: the Markdown page, its figures, and every number, without the runs.

The page for browsers is not kept: it says the same, and is made from these by the same command.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.errors import LabError, UsageError
from lab.paths import ROOT

FOLDER = ROOT / "docs" / "results"
KINDS = (".svg", ".csv", ".json")


def keep(results: Path, quick: bool, folder: Path = FOLDER) -> Path:
    """Copy what is in `results` to docs/results/reproduce-quick (or -night) in place of what was there."""
    made = [file for kind in KINDS for file in sorted(results.glob(f"*{kind}"))]
    page = results / "results.md"
    if not made or not page.exists():
        raise UsageError(f"there are no results in {results} yet")
    target = folder / f"reproduce-{'quick' if quick else 'night'}"
    try:
        if target.exists():
            shutil.rmtree(target)
        target.mkdir(parents=True)
        shutil.copyfile(page, target / "README.md")
        for file in made:
            shutil.copyfile(file, target / file.name)
    except OSError as error:
        raise LabError(f"cannot write {target}: {error.strerror}") from None
    return target
