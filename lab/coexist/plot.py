# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The figure of `./homa lab run coexist`: a column for each RPC load, some rows for each workload.

"short": the P99 slowdown of short RPCs by what the streams ask for; "lost": what the streams lose, with
what they must lose as a grey line; "sizes": the P99 slowdown by message size, alone (dashes) and beside
the most streams (lines); "rtt": round trips of short RPCs, P99 (lines) and P50 (dashes). Pale: runs
that do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lab.cluster.plot import draw_to
from lab.coexist.grid import KINDS
from lab.coexist.measured import Measured
from lab.sim import draw
from lab.units import format_bytes, format_rate

_COLOURS = {"homa": draw.BLUE, "homa-flat": draw.SKY, "homa-shared": draw.GREEN, "tcp": draw.RED}
_MARKERS = {"homa": "o", "homa-flat": "s", "homa-shared": "^", "tcp": "v"}
_DASHES = (0, (3, 2))
_PALE = 0.4
_LABELS = {
    "short": "short RPCs,\nP99 slowdown",
    "lost": "streams lose, %",
    "sizes": "all RPCs,\nP99 slowdown",
    "rtt": "short RPCs,\nround trip, ms",
}
_WORDS = {
    "short": "slowdown: over the round trip alone on wires",
    "lost": "of what they carry alone",
    "rtt": "lines: P99",
}
USUAL = ("short", "lost", "sizes")


def _line(
    panel,  # noqa: ANN001
    xs: Sequence[float],
    some: Sequence[Measured],
    values: Sequence,
    dashes: object = "-",
) -> list[float]:
    """A kind's curve, with a pale marker for each run that does not count."""
    kind = some[0].cell.kind
    known = [(x, y, r) for x, y, r in zip(xs, values, some, strict=True) if y is not None]
    if not known:
        return []
    pale = any(r.doubts for _, _, r in known)
    panel.plot(
        [x for x, _, _ in known], [y for _, y, _ in known], color=_COLOURS[kind], linewidth=1.7,
        alpha=_PALE if pale else 1.0, linestyle=dashes,
    )  # fmt: skip
    for x, y, r in known:
        panel.plot(
            [x], [y], color=_COLOURS[kind], marker=_MARKERS[kind], markersize=5,
            markeredgecolor="white", markeredgewidth=0.6, alpha=_PALE if r.doubts else 1.0,
        )  # fmt: skip
    return [y for _, y, _ in known]


def _by_stream(
    panel,  # noqa: ANN001
    mine: Sequence[Measured],
    value: Callable[[Measured], float | None],
    dashes: object = "-",
) -> list[float]:
    found: list[float] = []
    for kind in dict.fromkeys(r.cell.kind for r in mine):
        some = sorted((r for r in mine if r.cell.kind == kind), key=lambda r: r.cell.stream)
        xs = [r.cell.stream for r in some]
        found += _line(panel, xs, some, [value(r) for r in some], dashes)
    streams = sorted({r.cell.stream for r in mine})
    panel.set_xticks(streams, [str(s) for s in streams])
    panel.set_xlabel("streams ask for, % of the link", fontsize=8)
    return found


def _lost(panel, mine: Sequence[Measured]) -> None:  # noqa: ANN001
    values = _by_stream(panel, mine, lambda r: None if r.lost is None else 100 * r.lost)
    must = sorted(
        {r.cell.stream: 100 * r.must_lose for r in mine if r.must_lose is not None}.items()
    )
    if must:
        panel.plot(*zip(*must, strict=True), color=draw.GREY, linewidth=1.2, linestyle=_DASHES)
    panel.set_ylim(min([-2.0, *values]) - 1, max([10.0, *values, *(m for _, m in must)]) * 1.1)


def _sizes(panel, mine: Sequence[Measured]) -> float:  # noqa: ANN001
    highest = 10.0
    for kind in dict.fromkeys(r.cell.kind for r in mine):
        some = sorted((r for r in mine if r.cell.kind == kind), key=lambda r: r.cell.stream)
        beside = [(some[-1], "-")] if len(some) > 1 else []
        for r, dashes in [(some[0], _DASHES), *beside]:
            known = [(n + 0.5, t.slowdown_p99) for n, t in enumerate(r.tenths) if t.slowdown_p99]
            if known:
                panel.plot(
                    *zip(*known, strict=True), color=_COLOURS[kind], linestyle=dashes,
                    linewidth=1.6, alpha=_PALE if r.doubts else 1.0,
                )  # fmt: skip
                highest = max(highest, *(y for _, y in known))
    tenths = mine[0].tenths
    edges = [tenths[0].size_low, *(t.size_high for t in tenths)]
    panel.set_xlim(0, len(tenths))
    panel.set_xticks(range(len(edges)), [format_bytes(e) for e in edges], fontsize=6.5, rotation=45)
    panel.set_xlabel("message size, bytes (each step: a tenth)", fontsize=8)
    return highest


def _rtt(panel, mine: Sequence[Measured]) -> None:  # noqa: ANN001
    for name, dashes in (("p99_ns", "-"), ("p50_ns", _DASHES)):
        _by_stream(panel, mine, lambda r, name=name: _ms(r, name), dashes)
    panel.set_yscale("log")


def _ms(r: Measured, name: str) -> float | None:
    ns = getattr(r.short, name) if r.short else None
    return None if ns is None else ns / 1e6


def _legend(figure, kinds: Sequence[str], shown: Sequence[str]) -> None:  # noqa: ANN001
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=_COLOURS[k], marker=_MARKERS[k], markersize=5, linewidth=1.7)
        for k in kinds
    ]
    words = {"lost": "must lose", "sizes": "no streams", "rtt": "P50"}
    dashed = "; ".join(text for name, text in words.items() if name in shown)
    if dashed:
        handles.append(Line2D([], [], color=draw.GREY, linestyle=_DASHES, linewidth=1.2))
    names = [KINDS[k].title for k in kinds]
    draw.legend(figure, handles, [*names, dashed] if dashed else names, 2)


def paint(
    title: str, results: Sequence[Measured], path: Path, shown: Sequence[str] = USUAL
) -> None:
    """Draw `results` into `path` (.png, .pdf or .svg): for each workload the panels `shown`."""
    with_rpcs = [r for r in results if r.cell.rpc]
    workloads = list(dict.fromkeys(r.cell.workload for r in with_rpcs))
    rpcs = sorted({r.cell.rpc for r in with_rpcs})
    rows = len(shown)
    width, height = max(6.4, 1.2 + 3.0 * len(rpcs)), 1.95 + 2.1 * rows * len(workloads)
    with draw.canvas(width, height, rows * len(workloads), len(rpcs)) as (figure, panels):
        figure.subplots_adjust(
            left=0.95 / width, right=1 - 0.25 / width, top=1 - 1.6 / height, bottom=0.75 / height,
            hspace=0.5, wspace=0.3,
        )  # fmt: skip
        words = [text for name, text in _WORDS.items() if name in shown][:1]
        words += ["pale: does not count"] if any(r.doubts for r in results) else []
        draw.headline(figure, title, "; ".join(words), 0.95 / width)
        _legend(figure, list(dict.fromkeys(r.cell.kind for r in with_rpcs)), shown)
        for row, workload in enumerate(workloads):
            some = panels[rows * row : rows * (row + 1)]
            highest = dict.fromkeys(shown, 10.0)
            for column, rpc in enumerate(rpcs):
                mine = [r for r in with_rpcs if (r.cell.workload, r.cell.rpc) == (workload, rpc)]
                found = _column(dict(zip(shown, some[:, column], strict=True)), workload, rpc, mine)
                highest = {name: max(highest[name], found[name]) for name in shown}
            for name, line in zip(shown, some, strict=True):
                for panel in line if name in ("short", "sizes") else ():
                    draw.slowdown_axis(panel, highest[name])
                line[0].set_ylabel(_LABELS[name])
        draw_to(path, figure)


def _column(
    panels: dict[str, object], workload: str, rpc: int, mine: Sequence[Measured]
) -> dict[str, float]:
    """The panels of an RPC load; the greatest slowdown in each, 1 where there is none."""
    found = dict.fromkeys(panels, 1.0)
    for number, (name, panel) in enumerate(panels.items()):
        if not mine:
            panel.set_axis_off()  # type: ignore[attr-defined]
            continue
        draw.plain(panel)
        if not number:
            rate = format_rate(mine[0].facts["link_bps"])
            panel.set_title(  # type: ignore[attr-defined]
                f"{workload.upper()}, RPCs {rpc} % of {rate}", loc="left", fontsize=9,
                fontweight="bold",
            )  # fmt: skip
        if name == "short":
            values = _by_stream(panel, mine, lambda r: r.short.slowdown_p99 if r.short else None)
            found[name] = max([1.0, *values])
        elif name == "lost":
            _lost(panel, mine)
        elif name == "sizes":
            found[name] = _sizes(panel, mine)
        else:
            _rtt(panel, mine)
    return found
