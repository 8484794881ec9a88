# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which items a command makes, in which order.

Items of real packets need root and a machine that does nothing else, so `--quick` alone makes none;
`--lab`, `--night` and their own names do. They come after the simulated ones, one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.errors import LabError, UsageError
from lab.reproduce import items
from lab.reproduce.items import Item

NEED_ROOT = "real packets need root, for network namespaces"


def choose(names: Sequence[str], lab: bool, night: bool, root: bool) -> tuple[list[Item], bool]:
    """The items, and whether those of real packets were left out for want of root.

    Who asks for them, by name or by `lab`, is told that root is needed; full runs go on without.
    """
    found = items.choose(list(names))
    for item in found if names else []:
        if not item.made:
            how = f"give {item.command} itself" if item.command else item.differs
            raise UsageError(f"'{item.name}' is not made from here: {how}")
    simulated = [item for item in found if item.figure]
    real = [item for item in found if item.lab and (names or lab or night)]
    if real and not root:
        if names or lab:
            what = ", ".join(item.name for item in real)
            raise LabError(f"{NEED_ROOT}: give this command as root, or without {what}")
        return simulated, True
    return [*simulated, *real], False


def together(todo: Sequence[Item]) -> list[list[Item]]:
    """What is made at once: items of one experiment are views of the same runs."""
    found: dict[str, list[Item]] = {}
    for item in todo:
        found.setdefault(item.lab or f"simulated {item.name}", []).append(item)
    return list(found.values())
