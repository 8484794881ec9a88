# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Results that the repository keeps: a Markdown page, its figures, and every number, without the runs.

Item by item: what is kept of one stays until that one is measured again, and says itself at which
commit that was. The page for browsers is not kept: it says the same, and is made of the files.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

from lab.errors import LabError, UsageError
from lab.paths import ROOT
from lab.reproduce import markdown, place, results
from lab.reproduce import page as html
from lab.reproduce.items import ITEMS, Item
from lab.reproduce.page import Entry, Head
from lab.sim.figures.base import Options

FOLDER = ROOT / "docs" / "results"


def keep(made: Path, options: Options, names: list[str]) -> tuple[Path, list[str]]:
    """Copy the items `names` (none: all that are there) from `made` to docs/results.

    Gives the folder there, reproduce-quick or -night, and the names of what was copied. What that
    folder has of other items stays. UsageError, and nothing changes, if a file that is copied or
    stays is of another definition, or nothing is there to be copied.
    """
    quick = options.quick
    target = _target(quick)
    wanted = [item for item in ITEMS if item.made and (not names or item.name in names)]
    new = {item.name: found for item in wanted if (found := _own(made, item, quick))}
    if lacking := [name for name in names if name not in new]:
        raise UsageError(f"there are no results of {', '.join(lacking)} in {made}")
    if not new:
        raise UsageError(f"there are no results in {made} yet")
    stays = {
        item.name: found
        for item in ITEMS
        if item.made and item.name not in new and (found := _own(target, item, quick))
    }
    fresh = target.with_name(target.name + ".new")
    try:
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(parents=True)
        for item in ITEMS:
            document = new.get(item.name) or stays.get(item.name)
            for name in _files(item, document) if document else []:
                shutil.copyfile((made if item.name in new else target) / name, fresh / name)
        (fresh / "README.md").write_text(page({**stays, **new}, options))
        if target.exists():
            shutil.rmtree(target)
        fresh.rename(target)
    except OSError as error:
        raise LabError(f"cannot write {target}: {error.filename}: {error.strerror}") from None
    return target, list(new)


def limits() -> dict[str, float]:
    """The highest loads that quick runs found sustained, by "homa.w4": where full searches begin.

    Of Figure 12's file that is kept; nothing if there is none, because a search needs no guess.
    """
    found = results.load(FOLDER / "reproduce-quick" / "fig12.json") or {}
    probes = (found.get("values") or {}).get("probes") or []
    over = {p["case"]: p["load"] for p in reversed(probes) if p["verdict"] == "not sustained"}
    return {
        p["case"]: p["load"]
        for p in probes
        if p["verdict"] == "sustained" and p["load"] < over.get(p["case"], math.inf)
    }


def page(documents: dict[str, dict], options: Options) -> str:
    """The Markdown of kept items, by name; of the others it says that they are not measured."""
    return markdown.render(Head(options.quick, options.words()), _entries(documents))


def browse(options: Options, folder: Path | None) -> Path:
    """Write the page for browsers of what the repository keeps into `folder` (None: one of the
    build); its file. Needs no build and no run. LabError if nothing is kept."""
    source = _target(options.quick)
    documents = {
        item.name: found
        for item in ITEMS
        if item.made and (found := _own(source, item, options.quick))
    }
    if not documents:
        raise LabError(f"there are no results in {source}")
    name = "kept-quick.html" if options.quick else "kept-night.html"
    path = place.folder_of(options, folder) / name
    head = Head(options.quick, options.words())
    try:
        path.write_text(html.render(head, _entries(documents), source))
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}; give another --out") from None
    return path


def _entries(documents: dict[str, dict]) -> list[Entry]:
    return [Entry(item, documents.get(item.name), kept=True) for item in ITEMS]


def _target(quick: bool) -> Path:
    return FOLDER / f"reproduce-{'quick' if quick else 'night'}"


def _own(folder: Path, item: Item, quick: bool) -> dict | None:
    return results.own(folder / f"{item.name}.json", item, quick)


def _files(item: Item, document: dict) -> list[str]:
    return [f"{item.name}.json", f"{item.name}.csv", *document["pictures"]]
