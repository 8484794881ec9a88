# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""ATC'21 §5.5 in simulation: the buffer that the switch needs, and what too small a one does."""

from __future__ import annotations

from pathlib import Path

from lab.sim import compare, draw, tails
from lab.sim.figures.atc import PROTOCOLS, WORKLOADS, atc, short, words
from lab.sim.figures.base import Figure, Options, Output, Points, cell, finish
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.stats import Stat, stat
from lab.sim.sweep import pick
from lab.sim.tails import Few

# W5: MB that the ports share. The first is the cluster's; the others the paper tried.
POOLS = {"homa": (13, 9, 7, 6), "tcp": (13, 10, 6), "dctcp": (13, 2)}


def dropped(results: list[dict]) -> Stat | None:
    """Packets that the switch drops, a second and port."""
    found = []
    for result in results:
        drops = pick(result, ("sim", "counts", "window_drops"))
        seconds = pick(result, ("time", "window_s"))
        if drops is not None and seconds:
            found.append(drops / seconds / published()["atc"]["setup"]["hosts"])
    return stat(found)


def atc55(lab: Lab, options: Options) -> Output:
    """Peaks of all workloads; W5 with less and less memory."""
    chosen = options.chosen(PROTOCOLS)
    whole = {(p, w): atc(p, w, options) for w in WORKLOADS for p in chosen}
    less = {
        (p, mb): atc(p, "w5", options, **{"shared-buffer": f"{mb}mb"})
        for p in chosen
        for mb in POOLS[p]
    }
    points = Points(lab, options, {**whole, **less})
    peak = {key: points.stat(key, "sim", "switch_peak_bytes", scale=1e-3) for key in whole}
    drops = {key: dropped(points[key]) for key in less}
    tail = {key: points.tail(key, "slowdown") for key in less}
    theirs = published()["atc55"]
    rows = [
        compare.info(
            f"{draw.TITLES[p]} {w.upper()}, peak of the switch's buffer",
            theirs["peak"].get(w) if p == "homa" else None,
            value,
            "KB",
            0,
        )
        for (p, w), value in peak.items()
    ]
    rows += _pool_rows(drops, tail)

    def paint(stem: Path) -> list[Path]:
        return _paint(stem, options, chosen, peak, drops)

    return Output(
        "ATC'21 §5.5, simulated: the switch's buffer",
        ["protocol", "workload", "pool_mb", "n", "peak_kb", "peak_ci95", "drops_per_s_port",
         "drops_ci95", "p99_slowdown", "p99_ci95", "short_p99_us", "short_ci95"],
        [[p, w, 13, "", *cell(peak[p, w]), *[""] * 6] for p, w in whole]
        + [
            [p, "w5", mb, _count(tail[p, mb]), "", "", *cell(drops[p, mb]), *cell(tail[p, mb]),
             *cell(short(points[p, mb]))]
            for p, mb in less
        ],
        rows,
        paint,
        {
            "peak_kb": {f"{p}.{w}": s.mean for (p, w), s in peak.items() if s},
            "drops": {f"{p}.{mb}": s.mean for (p, mb), s in drops.items() if s},
        },
        [
            "Peak: all ports of the switch together, looked at 250 times a run, so the true peak is "
            "higher; with 13 MB that the ports share. Drops: packets a second and port.",
            "Unaffected or degraded: P99 slowdown of all messages to that with 13 MB; up to "
            f"{published()['goals']['atc55_unaffected']:g} times is taken for unaffected.",
        ],
    )  # fmt: skip


def _count(value: Stat | Few | None) -> object:
    return "" if value is None else value.samples


def _pool_rows(drops: dict, tail: dict) -> list[compare.Row]:
    theirs, factor = published()["atc55"], published()["goals"]["atc55_unaffected"]
    rows = []
    for (p, mb), ours in drops.items():
        what = f"{draw.TITLES[p]} W5, {mb} MB"
        printed = theirs["drops"].get(str(mb)) if p == "homa" else None
        if printed and printed[1] > printed[0]:
            rows.append(compare.between(f"{what}, drops a second and port", *printed, ours))
        else:
            value = printed[0] if printed else None
            rows.append(compare.info(f"{what}, drops a second and port", value, ours, "", 0))
        degraded = theirs["degraded"].get(p, {}).get(str(mb))
        if degraded is None:
            continue
        ratio = tails.ratio(tail[p, mb], tail[p, 13])
        what += ", P99 slowdown to that with 13 MB"
        if degraded:
            rows.append(compare.at_least(f"{what} (paper: degraded)", None, ratio, goal=factor))
        else:
            rows.append(compare.at_most(f"{what} (paper: unaffected)", None, ratio, goal=factor))
    return rows


def _paint(stem: Path, options: Options, chosen: list[str], peak: dict, drops: dict) -> list[Path]:
    theirs = published()["atc55"]["peak"]
    with draw.canvas(10.4, 4.4, 1, 2) as (figure, panels):
        figure.subplots_adjust(left=0.075, right=0.985, top=0.73, bottom=0.12, wspace=0.25)
        draw.headline(
            figure, "The switch’s buffer (ATC’21, §5.5, simulated)", words(options), 0.075
        )
        left, right = panels[0]
        draw.plain(left)
        width = 0.8 / len(chosen)
        for index, p in enumerate(chosen):
            xs = [n + (index - (len(chosen) - 1) / 2) * width for n in range(len(WORKLOADS))]
            values = [peak[p, w] for w in WORKLOADS]
            left.bar(
                xs,
                [v.mean if v else 0 for v in values],
                width * 0.9,
                color=draw.COLORS[p],
                label=draw.TITLES[p],
                yerr=[(v.half or 0) if v else 0 for v in values],
                error_kw={"elinewidth": 0.8, "ecolor": draw.INK},
            )
        for at, w in enumerate(WORKLOADS):
            if w in theirs:
                left.plot(
                    [at - 0.42, at - 0.42 + width],
                    [theirs[w]] * 2,
                    color=draw.PAPER,
                    linewidth=2,
                    label="published (Homa)" if w == "w2" else None,
                )
        from matplotlib.ticker import FuncFormatter

        left.set_yscale("log")
        left.set_ylim(30, 40000)
        left.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
        left.set_xticks(range(len(WORKLOADS)), [w.upper() for w in WORKLOADS], fontsize=10)
        left.tick_params(axis="x", length=0)
        left.set_title("largest, KB, all ports together", loc="left", fontsize=9.5)
        draw.plain(right)
        for p in chosen:
            here = [(mb, drops[p, mb].mean) for mb in POOLS[p] if drops[p, mb]]
            right.plot(
                [mb for mb, _ in here], [v for _, v in here], color=draw.COLORS[p],
                marker=draw.MARKERS[p] or "o", markersize=5, label=draw.TITLES[p],
            )  # fmt: skip
        right.set_yscale("symlog", linthresh=1)
        right.set_ylim(bottom=0)
        right.set_xlabel("MB that the ports share")
        right.set_title("W5: packets dropped a second and port", loc="left", fontsize=9.5)
        draw.legend(figure, *left.get_legend_handles_labels())
        return finish(figure, stem)


FIGURES = [Figure("atc55", "the switch's buffer: peaks, and W5 with less of it (§5.5)", atc55)]
