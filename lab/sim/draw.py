# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How figures look: colours that colour-blind readers tell apart, names beside the curves.

The colours are Okabe and Ito's. Protocols also differ in marker and dashes, so that a figure can
be read when printed in grey.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.errors import LabError
from lab.units import format_bytes

INK, GREY, GRID = "#22282e", "#5d6872", "#dfe4e8"
PAPER = "#000000"  # published numbers
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#b8a400",
)  # fmt: skip
COLORS = {
    "homa": BLUE,
    "pfabric": ORANGE,
    "phost": GREEN,
    "pias": PURPLE,
    "ndp": RED,
    "dctcp": ORANGE,
    "tcp": RED,
    "oracle": GREY,
}
MARKERS = {
    "homa": "o",
    "pfabric": "s",
    "phost": "^",
    "pias": "D",
    "ndp": "v",
    "dctcp": "s",
    "tcp": "v",
    "oracle": "",
}
DASHES = {
    "oracle": (0, (4, 2)),
    "pfabric": (0, (6, 1.5)),
    "phost": (0, (3, 1.2)),
    "dctcp": (0, (6, 1.5)),
}
TITLES = {
    "homa": "Homa",
    "pfabric": "pFabric",
    "phost": "pHost",
    "pias": "PIAS",
    "ndp": "NDP",
    "dctcp": "DCTCP",
    "tcp": "TCP",
    "oracle": "oracle",
}
# Ordered quantities (levels, loads): from light to dark blue, legible on white.
_RAMP = ("#9ecae1", "#08306b")


def ramp(count: int) -> list[str]:
    """`count` shades for ordered curves."""
    low, high = ([int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in _RAMP)
    steps = [index / max(1, count - 1) for index in range(count)]
    return [
        "#" + "".join(f"{round(a + (b - a) * s):02x}" for a, b in zip(low, high, strict=True))
        for s in steps
    ]


@contextmanager
def canvas(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: object
) -> Iterator:
    """A figure with `rows` x `columns` panels (an array) in this project's style."""
    # Matplotlib keeps a font cache in the home directory, which a service may not have.
    if not os.access(Path.home(), os.W_OK):
        os.environ.setdefault("MPLCONFIGDIR", tempfile.mkdtemp(prefix="homa-mpl-"))
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    style = {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": "#9aa4ad",
        "xtick.color": INK,
        "ytick.color": INK,
        "svg.fonttype": "none",
        "svg.hashsalt": "homa",
    }
    with plt.rc_context(style):
        figure, panels = plt.subplots(
            rows, columns, figsize=(width, height), squeeze=False, **shared
        )
        try:
            yield figure, panels
        finally:
            plt.close(figure)


def save(figure, stem: Path) -> list[Path]:  # noqa: ANN001 (matplotlib is imported late)
    """PNG and SVG at `stem`."""
    paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
    try:
        figure.savefig(paths[0], dpi=160, facecolor="white")
        figure.savefig(paths[1], facecolor="white", metadata={"Date": None})
    except OSError as error:
        raise LabError(f"cannot write {paths[0]}: {error.strerror}; give another --out") from None
    return paths


def headline(figure, title: str, subtitle: str, left: float = 0.07) -> None:  # noqa: ANN001
    """Title and what was simulated, above all panels."""
    height = figure.get_figheight()
    figure.text(left, 1 - 0.25 / height, title, fontsize=13, fontweight="bold", va="center")
    figure.text(left, 1 - 0.50 / height, subtitle, fontsize=8.8, color=GREY, va="center")


def legend(figure, handles: Sequence, labels: Sequence[str], columns: int = 4) -> None:  # noqa: ANN001
    """A legend below the headline, at the right; panels have to begin an inch below the top."""
    height = figure.get_figheight()
    figure.legend(
        handles,
        labels,
        loc="upper right",
        bbox_to_anchor=(0.995, 1 - 0.58 / height),
        ncols=columns,
        frameon=False,
        fontsize=8.5,
        handlelength=1.6,
        columnspacing=1.4,
    )


def plain(panel, grid: str = "y") -> None:  # noqa: ANN001
    """No box, light grid."""
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    panel.grid(axis=grid, which="major", color=GRID, linewidth=0.9)
    panel.set_axisbelow(True)
    panel.tick_params(length=3, which="both", color="#9aa4ad")


def slowdown_axis(panel, highest: float, least: float = 10) -> None:  # noqa: ANN001
    """A logarithmic axis from 1 up, with ticks at 1, 2, 5, 10, ..."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    panel.set_yscale("log")
    top = max(least, highest * 1.15)
    panel.set_ylim(0.95, top)
    ticks = [m * 10**e for e in range(7) for m in (1, 2, 5) if m * 10**e <= top]
    if top > 2000:
        ticks = [t for t in ticks if math.log10(t).is_integer()]
    panel.yaxis.set_major_locator(FixedLocator(ticks))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))


def size_axis(panel, bins: Sequence[dict], label: bool = True) -> None:  # noqa: ANN001
    """The papers' axis: each tenth of all messages has the same width; ticks say the sizes."""
    edges: list[tuple[float, str]] = []
    for tenth in range(11):
        place = tenth / 10
        below = [b for b in bins if b["to"] <= place + 1e-6]
        size = below[-1]["max_bytes"] if below else bins[0]["min_bytes"]
        # Nothing ends here where few messages make few points.
        known = not tenth or any(place - 0.1 < b["to"] - 1e-6 <= place for b in bins)
        edges.append((place, format_bytes(size) if known else ""))
    panel.set_xlim(0, 1)
    panel.set_xticks([e for e, _ in edges], [t for _, t in edges], rotation=45, fontsize=7.5)
    if label:
        panel.set_xlabel("message size, bytes (each step: a tenth of the messages)", fontsize=8.5)


def names(panel, ends: list[tuple[float, str, str]], log: bool = True, x: float = 1.015) -> None:  # noqa: ANN001
    """Write (value, text, colour) at the right edge, moved apart so that none overlap."""

    def place(value: float) -> float:
        return math.log10(max(value, 1e-9)) if log else value

    low, high = (place(limit) for limit in panel.get_ylim())
    box = panel.get_position()
    inches = box.height * panel.figure.get_figheight()
    line = (high - low) * 0.155 / max(inches, 0.1)
    rows = sorted((min(max(place(v), low), high), t, c) for v, t, c in ends)
    spots: list[float] = []
    for value, _, _ in rows:
        spots.append(max(value, spots[-1] + line) if spots else value)
    over = (spots[-1] - high) if spots else 0
    for index in range(len(spots) - 1, -1, -1):
        ceiling = high if index == len(spots) - 1 else spots[index + 1] - line
        if over > 0:
            spots[index] = min(spots[index], ceiling)
    for spot, (_, text, color) in zip(spots, rows, strict=True):
        panel.annotate(
            text,
            (x, 10**spot if log else spot),
            xycoords=("axes fraction", "data"),
            color=color,
            fontsize=8.8,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )


def curve(
    panel,  # noqa: ANN001
    xs: Sequence[float],
    ys: Sequence[float | None],
    protocol: str,
    **more: object,
) -> None:
    """A protocol's curve; gaps where there is no value."""
    points = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None]
    if not points:
        return
    settings: dict[str, object] = {
        "color": COLORS.get(protocol, INK),
        "linestyle": DASHES.get(protocol, "-"),
        "linewidth": 2.1 if protocol == "homa" else 1.5,
        "marker": MARKERS.get(protocol) or None,
        "markersize": 4.2,
        "markevery": max(1, len(points) // 10),
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
        "zorder": 4 if protocol == "homa" else 3,
    }
    panel.plot(*zip(*points, strict=True), **{**settings, **more})
