# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""ATC'21 Figures 5 and 6 in simulation: the number of priorities, and less load.

The paper shows Figure 5 for W5 and Figure 6 for W4 and says that the others are alike.
"""

from __future__ import annotations

from pathlib import Path

from lab.sim import compare, draw, tails
from lab.sim.figures.atc import NOTES, atc, short, words
from lab.sim.figures.base import Figure, Options, Output, Points, bins_of, cell, finish, means
from lab.sim.figures.slowdown import COLUMNS, label_ends, panel_of, records_of
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.stats import Stat

PRIORITIES = (1, 2, 3, 4, 8)
_QUICK_PRIORITIES = (1, 2, 4, 8)


def atc5(lab: Lab, options: Options) -> Output:
    """How many priorities are enough: W5, Homa with 1 to 8, TCP and DCTCP beside it."""
    levels = _QUICK_PRIORITIES if options.quick else PRIORITIES
    w = published()["atc5"]["workload"]
    specs: dict[object, dict] = {
        n: atc("homa", w, options, set={"num_priorities": n}) for n in levels
    }
    specs |= {p: atc(p, w, options) for p in ("dctcp", "tcp")}
    points = Points(lab, options, specs)
    bins = {key: bins_of(points[key]) for key in points.keys()}
    tenth = {key: short(points[key]) for key in specs}
    overall = {key: points.tail(key, "slowdown") for key in specs}
    shades = dict(zip(levels, draw.ramp(len(levels)), strict=True))

    def title(key: object) -> str:
        if isinstance(key, int):
            return f"Homa, {key} level{'s' if key > 1 else ''}"
        return draw.TITLES[str(key)]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.8, 5.0) as (figure, panels):
            figure.subplots_adjust(left=0.075, right=0.85, top=0.86, bottom=0.17)
            draw.headline(
                figure,
                f"Number of priorities, {w.upper()}, high load (ATC’21, Figure 5, simulated)",
                words(options),
                0.075,
            )
            curves = [
                ("homa" if isinstance(k, int) else str(k), title(k), shades.get(k, ""), bins[k])
                for k in specs
                if bins.get(k)
            ]
            panel = panels[0, 0]
            if curves:
                highest = panel_of(panel, curves)
                draw.plain(panel)
                draw.slowdown_axis(panel, highest)
                draw.size_axis(panel, curves[0][3])
                panel.set_ylabel("P99 slowdown")
                label_ends(panel, curves)
            return finish(figure, stem)

    goal = published()["goals"]["atc5_two_to_eight"]
    two = tails.ratio(overall[2], overall[8])
    one = tails.ratio(overall[1], overall["dctcp"])
    rows = [
        compare.at_most(
            f"{w.upper()}, P99 slowdown of 1 priority to DCTCP (paper: much better)",
            None,
            one,
            goal=1.0,
        ),
        compare.at_most(f"{w.upper()}, P99 slowdown of 2 priorities to 8", None, two, goal=goal),
        *(
            compare.info(f"{w.upper()}, {title(key)}, P99 slowdown, all messages", None, value)
            for key, value in overall.items()
        ),
        *(
            compare.info(f"{w.upper()}, {title(key)}, short messages, P99", None, value, "µs", 1)
            for key, value in tenth.items()
        ),
    ]
    ratio = tails.known(two)
    return Output(
        "ATC'21 Figure 5, simulated: number of priorities",
        ["who", *COLUMNS],
        [r for key, part in bins.items() for r in records_of((title(key),), part)],
        rows,
        paint,
        {"two_to_eight": ratio.mean if ratio else None},
        [
            "The paper's figure has no numbers; its text says that Homa does well with 2 levels.",
            *NOTES,
        ],
    )


PARTS = {"1": 1.0, "1/2": 0.5, "1/10": 0.1}


def atc6(lab: Lab, options: Options) -> Output:
    """The load of Figure 3, half of it, a tenth of it: W4, Homa and DCTCP."""
    chosen = options.chosen(("homa", "dctcp"))
    specs = {(p, n): atc(p, "w4", options, part) for p in chosen for n, part in PARTS.items()}
    points = Points(lab, options, specs)
    bins = {key: bins_of(points[key]) for key in points.keys()}
    tail = {key: short(points[key]) for key in specs}
    widths = dict(zip(PARTS, (2.2, 1.5, 0.9), strict=True))

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.8, 5.0) as (figure, panels):
            figure.subplots_adjust(left=0.075, right=0.86, top=0.86, bottom=0.17)
            draw.headline(
                figure,
                "P99 slowdown of RPCs at a full, half and tenth load, W4 (ATC’21, Figure 6, simulated)",
                words(options) + "; thinner: less load",
                0.075,
            )
            panel = panels[0, 0]
            curves, highest = [], 1.0
            for (p, n), rows in bins.items():
                if not rows:
                    continue
                curves.append((p, f"{draw.TITLES[p]} × {n}", "", rows))
                xs = [(r["from"] + r["to"]) / 2 for r in rows]
                draw.curve(panel, xs, means(rows, "p99"), p, linewidth=widths[n])
                highest = max([highest, *(v for v in means(rows, "p99") if v)])
            draw.plain(panel)
            draw.slowdown_axis(panel, highest)
            if curves:
                draw.size_axis(panel, curves[0][3])
                label_ends(panel, curves)
            panel.set_ylabel("P99 slowdown")
            return finish(figure, stem)

    theirs = published()["atc6"]
    rows, times = [], {}
    for p in chosen:
        found = [tail[p, n] for n in PARTS]
        some = [value for value in found if isinstance(value, Stat)]
        whole = None
        if len(some) == len(found) and min(s.mean for s in some):
            least = min(s.samples or 0 for s in some)
            means_ = [s.mean for s in some]
            whole = Stat(max(means_) / min(means_), None, some[0].count, least)
            times[p] = whole.mean
        elif found[0] is not None:
            whole = tails.Few(min(v.samples or 0 for v in found if v))
        what = f"{draw.TITLES[p]} W4, short messages, P99, largest to smallest of three loads"
        if p == "homa":
            rows.append(compare.at_most(what, theirs["homa_times"], whole))
        else:
            rows.append(compare.info(what, theirs["dctcp_times"], whole))
    rows += [
        compare.info(f"{draw.TITLES[p]} W4, load × {n}, short messages, P99", None, value, "µs", 1)
        for (p, n), value in tail.items()
    ]
    return Output(
        "ATC'21 Figure 6, simulated: full, half and tenth load",
        ["protocol", "load", "short_p99_us", "short_ci95", *COLUMNS],
        [r for (p, n), part in bins.items() for r in records_of((p, n, *cell(tail[p, n])), part)],
        rows,
        paint,
        {"short_p99_times": times},
        ["Runs at less load are longer by as much, so that each has as many messages.", *NOTES],
    )


FIGURES = [
    Figure("atc5", "number of priorities, 1 to 8, W5", atc5),
    Figure("atc6", "load × 1, 1/2 and 1/10, W4", atc6),
]
