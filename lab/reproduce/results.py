# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A finished item's file: what it says of its origin, and whether it may stand beside this lab's.

A number is only comparable if it means the same. So each file names the schema of its fields and
the rule by which its figure judges; a file of another schema or rule is refused, never converted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lab import provenance
from lab.errors import UsageError
from lab.reproduce.items import Item
from lab.reproduce.real.catalogue import EXPERIMENTS
from lab.reproduce.real.experiment import Bench
from lab.sim import figures
from lab.sim.figures.base import Options

SCHEMA = "homa-reproduce/1"
INTERVAL = "95 %, Student's t over seeds"
NO_INTERVAL = "need more than one seed"
ROUNDS = "95 %, Student's t over rounds"
_DIRTY = "-dirty"


def origin(
    item: Item,
    options: Options,
    simulator: dict[str, object],
    here: dict[str, object] | None = None,
) -> dict[str, object]:
    """Where an item comes from, with the `simulator` that made it: what its file says of it.

    `here`: the machine at another moment than now.
    """
    where, said = dict(here or provenance.here()), seeds(item, options)
    commit = str(where.pop("commit"))
    return {
        "commit": commit.removesuffix(_DIRTY),
        "clean": bool(commit) and not commit.endswith(_DIRTY),
        "simulator": simulator,
        "command": command(item, options),
        "seeds": said,
        "interval": interval(item, len(said)),
        "machine": where,
    }


def simulator(build: str) -> dict[str, object]:
    """The simulator of this tree, whose program has the hash `build`."""
    commit = provenance.commit()
    return {
        "build": build,
        "commit": commit.removesuffix(_DIRTY),
        "clean": bool(commit) and not commit.endswith(_DIRTY),
    }


def seeds(item: Item, options: Options) -> list[int]:
    """Those that an item is made with; real packets take their time and have fewer."""
    if item.lab:
        return EXPERIMENTS[item.lab].seed_list(options.quick, options.seeds)
    return options.seed_list()


def interval(item: Item, seeds: int) -> str:
    """What its intervals are."""
    if item.lab and isinstance(EXPERIMENTS[item.lab], Bench):
        return ROUNDS
    return NO_INTERVAL if item.lab and seeds < 2 else INTERVAL


def rule(item: Item) -> str:
    """The definition of its numbers."""
    return EXPERIMENTS[item.lab].rule if item.lab else figures.FIGURES[item.figure].rule


def command(item: Item, options: Options) -> str:
    """What makes an item so."""
    words = ["./homa reproduce", "--quick" if options.quick else "--night"]
    if item.lab:
        words.insert(0, "sudo")
    if options.seeds:
        words.append(f"--seeds {options.seeds}")
    return " ".join([*words, item.name])


def load(path: Path) -> dict | None:
    """The JSON object in a file; None if there is none."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def foreign(document: dict, item: Item, quick: bool) -> str:
    """Why an item's file may not stand beside those of this lab; "" if it may."""
    schema = document.get("schema")
    if schema != SCHEMA:
        return f"its schema is {schema or 'none'}, not {SCHEMA}"
    theirs, ours = document.get("rule"), rule(item)
    if theirs != ours:
        return f"its rule is '{theirs}', not '{ours}'"
    if document.get("quick") is not quick:
        return f"its runs are {'full' if quick else 'short'} ones"
    lacking = [name for name in ("origin", "rows", "pictures") if name not in document]
    return f"it has no '{lacking[0]}'" if lacking else ""


def own(path: Path, item: Item, quick: bool) -> dict | None:
    """An item's file as it may be shown; None if there is none. UsageError if it is foreign()."""
    found = load(path)
    if found is None:
        return None
    if why := foreign(found, item, quick):
        raise UsageError(
            f"{path} is a result of another definition: {why}; make it again or remove it"
        )
    return found


def words(document: dict) -> str:
    """Where an item comes from, in a few sentences."""
    said = document["origin"]
    machine, made = said["machine"], said["simulator"]
    text = (
        f"Measured at commit {commit(said)}, {machine.get('date', 'on an unknown day')}, on "
        f"{machine.get('cores')} cores ({machine.get('cpu')}), Linux {machine.get('kernel')}, load "
        f"{machine.get('load', 0):.1f}. "
    )
    if (made["commit"], made["clean"]) != (said["commit"], said["clean"]):
        text += f"The simulator is that of commit {commit(made)}. "
    if not document.get("complete", True):
        text += "Not all of it is measured yet. "
    runs = f"{'Rounds' if said['interval'] == ROUNDS else 'Seeds'} {_list(said['seeds'])}"
    return text + f"{runs}; intervals {said['interval']}. By: {said['command']}"


def commit(said: dict) -> str:
    """For people."""
    name = said.get("commit") or "unknown"
    return name if said.get("clean") else f"{name} with changes that are in no commit"


def _list(seeds: Sequence[int]) -> str:
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
