# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The figure of `./homa lab run incast`: P99 and the client's port, by how many hosts answer.

Lines are real packets, dashes the simulator; pale markers are runs that do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lab.cluster.plot import draw_to
from lab.incast.bursts import KINDS
from lab.incast.measured import Measured
from lab.sim import draw

_COLOURS = {"homa": draw.BLUE, "homa-free": draw.SKY, "tcp": draw.RED}
_MARKERS = {"homa": "o", "homa-free": "s", "tcp": "v"}
_DASHES = (0, (3, 2))
_PALE = 0.4

_Value = Callable[[Measured], float | None]


def _curves(panel, results: Sequence[Measured], lab: _Value, sim: _Value) -> None:  # noqa: ANN001
    for kind in dict.fromkeys(r.cell.kind for r in results):
        mine = sorted((r for r in results if r.cell.kind == kind), key=lambda r: r.cell.senders)
        colour = _COLOURS[kind]
        for value, dashes in ((lab, "-"), (sim, _DASHES)):
            known = [(r.cell.senders, y) for r in mine if (y := value(r)) is not None]
            if known:
                panel.plot(*zip(*known, strict=True), color=colour, linestyle=dashes, linewidth=1.5)
        for r in mine:
            if (y := lab(r)) is not None:
                panel.plot(
                    [r.cell.senders], [y], color=colour, marker=_MARKERS[kind], markersize=5,
                    markeredgecolor="white", markeredgewidth=0.6, alpha=_PALE if r.doubts else 1,
                )  # fmt: skip
    senders = sorted({r.cell.senders for r in results})
    panel.set_xscale("log", base=2)
    panel.set_xticks(senders, [str(n) for n in senders])
    panel.minorticks_off()
    panel.set_xlabel("hosts that answer at once", fontsize=8.5)


def paint(title: str, buffer: int, results: Sequence[Measured], path: Path) -> None:
    """Draw `results` into `path` (.png, .pdf or .svg)."""
    from matplotlib.lines import Line2D

    with draw.canvas(8.6, 4.6, 1, 2) as (figure, panels):
        figure.subplots_adjust(left=0.09, right=0.98, top=0.7, bottom=0.13, wspace=0.28)
        left, right = panels[0]
        for panel in (left, right):
            draw.plain(panel)
        _curves(left, results, lambda r: _ms(r.lab["p99"]), lambda r: _ms(r.sim["p99"]))
        alone = sorted({(r.cell.senders, r.least / 1e6) for r in results})
        left.plot(*zip(*alone, strict=True), color=draw.GREY, linewidth=1.2, linestyle=":")
        left.set_yscale("log")
        left.set_title("P99 of an RPC, ms", loc="left", fontsize=9, fontweight="bold")
        _curves(
            right, results, lambda r: r.facts["peak_queue"] / 1e3,
            lambda r: r.facts["sim_peak_queue"] / 1e3,
        )  # fmt: skip
        right.axhline(buffer / 1e3, color=draw.GREY, linewidth=1.2, linestyle=":")
        right.set_ylim(0, max(buffer, *(r.facts["peak_queue"] for r in results)) * 1.08 / 1e3)
        right.set_title(
            "longest queue of the client's port, KB", loc="left", fontsize=9, fontweight="bold"
        )
        words = (
            "lines: real packets; dashes: simulated; dots: a burst on bare wires, and the buffer"
        )
        doubted = any(r.doubts for r in results)
        draw.headline(figure, title, words + "; pale: does not count" if doubted else words, 0.09)
        kinds = list(dict.fromkeys(r.cell.kind for r in results))
        handles = [
            Line2D([], [], color=_COLOURS[k], marker=_MARKERS[k], markersize=5, linewidth=1.5)
            for k in kinds
        ]
        draw.legend(figure, handles, [KINDS[k].title for k in kinds], 3)
        draw_to(path, figure)


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6
