# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Results that the repository keeps: the Markdown page, its figures, and every number, without the runs.

The page for browsers is not kept: it says the same, and is made from these by the same command.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.errors import LabError, UsageError
from lab.paths import ROOT
from lab.reproduce.items import ITEMS

FOLDER = ROOT / "docs" / "results"
KINDS = (".svg", ".csv", ".json")


def keep(results: Path, quick: bool) -> Path:
    """Copy what is in `results` to docs/results/reproduce-quick (or -night) in place of what was there.

    UsageError if a figure is there that `results` has not: it would be lost.
    """
    made = [file for kind in KINDS for file in sorted(results.glob(f"*{kind}"))]
    page = results / "results.md"
    if not made or not page.exists():
        raise UsageError(f"there are no results in {results} yet")
    target = FOLDER / f"reproduce-{'quick' if quick else 'night'}"
    known = {item.figure for item in ITEMS if item.figure}
    lost = _figures(target) & known - _figures(results)
    if lost:
        raise UsageError(
            f"{target} has {', '.join(sorted(lost))}, which {results} has not: make them, too, "
            f"or remove {target} first"
        )
    fresh = target.with_name(target.name + ".new")
    try:
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(parents=True)
        shutil.copyfile(page, fresh / "README.md")
        for file in made:
            shutil.copyfile(file, fresh / file.name)
        if target.exists():
            shutil.rmtree(target)
        fresh.rename(target)
    except OSError as error:
        raise LabError(f"cannot write {target}: {error.strerror}") from None
    return target


def _figures(folder: Path) -> set[str]:
    return {file.stem for file in folder.glob("*.json")}
