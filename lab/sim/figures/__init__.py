# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The papers' figures by name."""

from __future__ import annotations

from lab.errors import UsageError
from lab.sim.figures import (
    analytic,
    atc,
    atc_buffers,
    atc_software,
    atc_tables,
    atc_vary,
    cores,
    inside,
    limits,
    lowqueue,
    slowdown,
    tas,
    tas_loss,
)
from lab.sim.figures.base import Figure

_ORDER = (
    "fig10", "fig11", "fig12", "fig13", "fig14", "table1", "unsched",
    "atc-table2", "atc-table3", "atc3", "atc3-cores", "atc4", "atc4-cores", "atc5", "atc6", "atc7", "atc-cores", "atc55",
    "snia-offload", "lowqueue", "tas-7", "tas-11", "tas-12", "tas-13", "analytic",
)  # fmt: skip
_PARTS = (
    slowdown,
    inside,
    limits,
    atc,
    atc_software,
    atc_tables,
    atc_vary,
    atc_buffers,
    cores,
    lowqueue,
    tas,
    tas_loss,
    analytic,
)
_ALL = {f.name: f for part in _PARTS for f in part.FIGURES}
FIGURES: dict[str, Figure] = {name: _ALL[name] for name in _ORDER}


def choose(name: str) -> list[Figure]:
    """The figure called `name`, or all; UsageError if there is none."""
    if name == "all":
        return list(FIGURES.values())
    if name not in FIGURES:
        raise UsageError(f"no figure is called '{name}'; ./homa sim figure --list shows them")
    return [FIGURES[name]]
