# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The figure of `./homa lab run`: P99 slowdown by message size, real packets as lines, the
simulator as dashes of the same colour. Each tenth of the messages has the same width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.cluster.real_and_simulated import Compared
from lab.errors import LabError
from lab.sim import draw
from lab.units import format_bytes, format_rate

SUFFIXES = (".png", ".pdf", ".svg")
_COLOURS = {
    "homa": draw.BLUE,
    "tcp": draw.RED,
    "tcp-pool": draw.ORANGE,
    "tcp-bbr": draw.PURPLE,
    "tcp-homad": draw.GREEN,
}


def _colours(points: Sequence[Compared]) -> dict[str, str]:
    """By label; several curves of one transport are shades, or differ too little otherwise."""
    found: dict[str, str] = {}
    for transport in dict.fromkeys(one.transport for one in points):
        labels = list(dict.fromkeys(one.label for one in points if one.transport == transport))
        one_colour = len(labels) == 1 or transport != "homa"
        shades = [_COLOURS[transport]] * len(labels) if one_colour else draw.ramp(len(labels))
        found |= dict(zip(labels, shades, strict=True))
    return found


def draw_point(panel, one: Compared, colour: str) -> list[float]:  # noqa: ANN001
    """Both curves of a point; their values."""
    values: list[float] = []
    for where, dashes, width in (("lab", "-", 2.0), ("sim", (0, (3, 2)), 1.3)):
        places = [
            (number + 0.5, value)
            for number, row in enumerate(one.rows)
            if (value := row.slowdown(where, "p99")) is not None
        ]
        if not places:
            continue
        values += [value for _, value in places]
        panel.plot(
            *zip(*places, strict=True),
            color=colour,
            linestyle=dashes,
            linewidth=width,
            marker="o" if where == "lab" else None,
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            alpha=0.45 if one.doubts and where == "lab" else 1.0,
        )
    return values


def _panel(panel, workload: str, points: Sequence[Compared], colours: dict[str, str]) -> None:  # noqa: ANN001
    mine = [one for one in points if one.workload == workload]
    highest = 10.0
    ends = []
    for one in mine:
        values = draw_point(panel, one, colours[one.label])
        highest = max([highest, *values])
        last = next((v for r in reversed(one.rows) if (v := r.slowdown("lab", "p99"))), None)
        if last is not None:
            ends.append((last, one.label, colours[one.label]))
    draw.plain(panel)
    draw.slowdown_axis(panel, highest)
    rows = mine[0].rows
    edges = [rows[0].size_low, *(row.size_high for row in rows)] if rows else []
    panel.set_xlim(0, max(1, len(rows)))
    panel.set_xticks(range(len(edges)), [format_bytes(edge) for edge in edges], fontsize=7.5)
    panel.set_ylabel("P99 slowdown")
    facts = mine[0].facts
    title = f"{workload.upper()}   {format_rate(facts['link_bps'])}, {facts['dilation']:g} × slower"
    panel.set_title(title, loc="left", fontsize=9.5, fontweight="bold", pad=4)
    if ends:
        draw.names(panel, ends)


def draw_figure(figure, panels, title: str, points: Sequence[Compared]) -> None:  # noqa: ANN001
    """Headline, legend and a panel per workload."""
    workloads = list(dict.fromkeys(one.workload for one in points))
    height = figure.get_figheight()
    figure.subplots_adjust(
        left=0.085, right=0.8, top=1 - 1.05 / height, bottom=0.55 / height, hspace=0.32
    )
    doubted = any(one.doubts for one in points)
    words = "slowdown: P99 over the round trip alone on wires of this rate; pale: does not count"
    draw.headline(figure, title, words if doubted else words.split(";")[0], 0.085)
    colours = _colours(points)
    for panel, workload in zip(panels[:, 0], workloads, strict=True):
        _panel(panel, workload, points, colours)
    panels[-1, 0].set_xlabel("message size in bytes (each step: a tenth of the messages)")
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=draw.INK, linewidth=2, marker="o", markersize=4.5),
        Line2D([], [], color=draw.INK, linewidth=1.3, linestyle=(0, (3, 2))),
    ]
    draw.legend(figure, handles, ["real packets", "simulator"])


def draw_to(path: Path, figure) -> None:  # noqa: ANN001
    """Write the file."""
    try:
        # A date in a file would make each one another.
        about = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=160, facecolor="white", metadata=about)
    except (OSError, ValueError) as error:
        raise LabError(f"cannot write {path}: {error}; name another file with --plot") from None


def paint(title: str, points: Sequence[Compared], path: Path) -> None:
    """Draw `points` into `path` (.png, .pdf or .svg), one panel per workload."""
    rows = len(dict.fromkeys(one.workload for one in points))
    with draw.canvas(9.2, 1.6 + 2.7 * rows, rows, 1) as (figure, panels):
        draw_figure(figure, panels, title, points)
        draw_to(path, figure)
