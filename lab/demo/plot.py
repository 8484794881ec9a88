# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The demo's figure: slowdown over message size, after Figure 3 of the ATC'21 paper.

The horizontal axis is spaced by share of messages, not by bytes: each tenth of all messages
has the same width, and the ticks say how large the messages are there. So a curve shows what
most messages see, and a flat one means that nobody pays. The vertical axis is logarithmic.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from lab.errors import LabError
from lab.demo.report import LABELS, Report, Run
from lab.units import format_bytes

COLORS = {"homa": "#0b6e4f", "tcp-pool": "#e07a1f", "tcp": "#b3243b", "udp": "#5b6c7d"}
MARKERS = {"homa": "o", "tcp-pool": "s", "tcp": "^", "udp": "D"}
SUFFIXES = (".png", ".pdf", ".svg")
_INK, _GRID = "#22282e", "#d9dee3"


def draw(result: Report, path: Path) -> None:
    """Draw `result` into `path` (.png, .pdf or .svg), one panel per buffer size."""
    # Matplotlib keeps a font cache in the home directory, which a service may not have.
    if not os.access(Path.home(), os.W_OK):
        os.environ.setdefault("MPLCONFIGDIR", tempfile.mkdtemp(prefix="homa-mpl-"))
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    buffers = result.buffers()
    style = {
        "font.family": "DejaVu Sans",
        "font.size": 9.5,
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "axes.edgecolor": "#9aa4ad",
        "xtick.color": _INK,
        "ytick.color": _INK,
        "svg.fonttype": "none",
    }
    with plt.rc_context(style):
        figure, panels = plt.subplots(
            len(buffers),
            1,
            figsize=(8.6, 1.5 + 3.25 * len(buffers)),
            sharex=True,
            sharey=True,
            squeeze=False,
        )
        # Shared axes: the limits once, from all panels.
        highest = max(
            (p for r in result.runs for row in r.rows if (p := row.slowdown_p99)), default=10
        )
        panels[0, 0].set_yscale("log")
        panels[0, 0].set_ylim(0.9, max(10, highest * 1.8))
        for panel, buffer in zip(panels[:, 0], buffers, strict=True):
            _panel(panel, result, buffer)
        panels[-1, 0].set_xlabel(
            "message size in bytes (each interval holds a tenth of all messages)", labelpad=7
        )
        _headline(figure, result, len(buffers))
        try:
            figure.savefig(path, dpi=160, facecolor="white")
        except (OSError, ValueError) as error:
            raise LabError(f"cannot write {path}: {error}; name another file with --plot") from None
        finally:
            plt.close(figure)


def _panel(panel, result: Report, buffer: int) -> None:  # noqa: ANN001 (matplotlib is imported late)
    from matplotlib.ticker import FuncFormatter, NullFormatter

    runs = [run for name in result.transports() if (run := result.run(name, buffer))]
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.grid(axis="y", which="major", color=_GRID, linewidth=0.9)
    panel.grid(axis="y", which="minor", color=_GRID, linewidth=0.35)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    panel.tick_params(length=3, which="both", color="#9aa4ad")
    for run in runs:
        _curve(panel, run, [row.slowdown_p99 for row in run.rows], "-", 1.9, 1.0)
        _curve(panel, run, [row.slowdown_p50 for row in run.rows], (0, (3, 2)), 1.1, 0.75)
    rows = runs[0].rows if runs else []
    edges = [rows[0].size_low, *(row.size_high for row in rows)] if rows else []
    panel.set_xlim(0, max(1, len(rows)))
    panel.set_xticks(range(len(edges)), [format_bytes(edge) for edge in edges])
    panel.set_ylabel("slowdown", labelpad=2)
    times = buffer / result.buffers()[0]
    more = "" if times == 1 else f"  ({times:.0f} times as much)"
    if result.network.get("buffers"):
        panel.set_title(
            f"switch buffer {buffer // 1024} KB per port{more}", loc="left", fontsize=10, pad=6
        )
    _names(panel, runs)


def _curve(panel, run: Run, values: list[float | None], dashes, width: float, alpha: float) -> None:  # noqa: ANN001
    points = [(index + 0.5, value) for index, value in enumerate(values) if value is not None]
    solid = dashes == "-"
    panel.plot(
        *zip(*points, strict=True) if points else ([], []),
        linestyle=dashes,
        color=COLORS.get(run.transport, _INK),
        linewidth=width,
        alpha=alpha,
        marker=MARKERS.get(run.transport, "o") if solid else None,
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.7,
        clip_on=False,
        zorder=3 if solid else 2,
    )


def _names(panel, runs: list[Run]) -> None:  # noqa: ANN001
    """Write each transport's name at the right end of its curve, spread so that none overlap."""
    from math import log10

    ends = sorted(
        (log10(max(last, 0.5)), run.transport)
        for run in runs
        if (
            last := next((row.slowdown_p99 for row in reversed(run.rows) if row.slowdown_p99), None)
        )
    )
    low, high = (log10(limit) for limit in panel.get_ylim())
    line = (high - low) * 0.062  # the height of a line of text
    place = low - line
    for height, name in ends:
        place = max(height, place + line)
        panel.annotate(
            LABELS.get(name, name),
            (1.012, 10**place),
            xycoords=("axes fraction", "data"),
            color=COLORS.get(name, _INK),
            fontsize=9.5,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )


def _headline(figure, result: Report, panels: int) -> None:  # noqa: ANN001
    from matplotlib.lines import Line2D

    settings = result.settings
    height = 1.5 + 3.25 * panels
    figure.subplots_adjust(
        left=0.1, right=0.865, top=1 - 1.0 / height, bottom=0.62 / height, hspace=0.2
    )
    figure.text(
        0.1, 1 - 0.30 / height, str(settings["title"]), fontsize=13, fontweight="bold", va="center"
    )
    figure.text(
        0.1, 1 - 0.56 / height, str(settings["subtitle"]), fontsize=9, color="#56616b", va="center"
    )
    lines = [
        Line2D(
            [], [], color=_INK, linewidth=1.9, marker="o", markersize=5, markeredgecolor="white"
        ),
        Line2D([], [], color=_INK, linewidth=1.1, linestyle=(0, (3, 2)), alpha=0.75),
    ]
    figure.legend(
        lines,
        ["P99", "median"],
        loc="upper right",
        bbox_to_anchor=(0.872, 1 - 0.62 / height),
        frameon=False,
        ncols=2,
        fontsize=9,
        handlelength=2.2,
        columnspacing=1.4,
    )
