# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Beyond the papers: the preset that keeps queues short, and what it costs."""

from __future__ import annotations

from pathlib import Path

from lab.errors import LabError
from lab.sim import compare, draw, program, tails
from lab.sim.figures.base import (
    WORKLOADS,
    Figure,
    Options,
    Output,
    Points,
    bins_of,
    cell,
    finish,
    network_words,
    sigcomm,
)
from lab.sim.figures.order import average
from lab.sim.figures.slowdown import COLUMNS, label_ends, panel_of, records_of
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.stats import Stat, stat
from lab.sim.sweep import pick


def preset() -> str:
    """The name of the preset; LabError if this homa-sim has none."""
    names = program.presets("homa")
    for name in names:
        if name.startswith("low"):
            return name
    raise LabError("this homa-sim has no preset for short queues; rebuild it with ./homa build")


def _ratio(points: Points, w: str, *place: str) -> Stat | None:
    """low / default, seed by seed."""
    pairs = zip(points["low", w], points["default", w], strict=False)
    found = [(pick(a, place), pick(b, place)) for a, b in pairs]
    return stat(a / b for a, b in found if a is not None and b)


def price_by_size(low: list[dict], default: list[dict]) -> list[float]:
    """P99 of each tenth of the sizes, low to default: geometric means of its bins."""
    result = []
    for tenth in range(10):
        edges = (tenth / 10, (tenth + 1) / 10)
        one, other = average(low, *edges), average(default, *edges)
        if one and other:
            result.append(one.mean / other.mean)
    return result


def lowqueue(lab: Lab, options: Options) -> Output:
    """Queues and tails with the preset and without it."""
    name = preset()
    specs = {}
    for w in WORKLOADS:
        specs["default", w] = sigcomm(w, 0.8, options)
        specs["low", w] = sigcomm(w, 0.8, options, preset=name)
    points = Points(lab, options, specs)
    place = ("sim", "queues", "host-down", "max_bytes")
    peak = {key: points.stat(key, *place, scale=1e-3) for key in specs}
    tail = {key: points.tail(key, "slowdown") for key in specs}
    less = {w: _ratio(points, w, *place) for w in WORKLOADS}
    price = {w: tails.ratio(tail["low", w], tail["default", w]) for w in WORKLOADS}
    goals = published()["goals"]
    bins = {key: bins_of(points[key]) for key in points.keys()}
    rows, worst = [], {}
    for w in WORKLOADS:
        one = less[w]
        times = Stat(1 / one.mean, None, one.count) if one and one.mean else None
        rows.append(
            compare.at_least(
                f"{w.upper()}, peak queue, default to {name}",
                None,
                times,
                goal=goals["queue_factor"],
            )
        )
        rows.append(
            compare.at_most(
                f"{w.upper()}, price in P99, all sizes", None, price[w], goal=goals["p99_price"]
            )
        )
        if sizes := price_by_size(bins.get(("low", w), []), bins.get(("default", w), [])):
            worst[w] = max(sizes)
            what = f"{w.upper()}, price in P99, worst tenth of sizes"
            rows.append(
                compare.at_most(what, None, Stat(worst[w], None, 1), goal=goals["p99_price"])
            )
    both = {"default": draw.BLUE, "low": draw.ORANGE}
    label = {"default": "default", "low": name}

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(11.0, 12.0, 5, 2, gridspec_kw={"width_ratios": [1, 3.6]}) as (
            figure,
            panels,
        ):
            figure.subplots_adjust(
                left=0.065, right=0.91, top=0.93, bottom=0.05, hspace=0.55, wspace=0.16
            )
            draw.headline(
                figure,
                f"Short queues and their price: preset {name}, 80 % load",
                network_words(options) + "; left: largest queue, right: P99 slowdown",
                0.065,
            )
            for row, w in zip(panels, WORKLOADS, strict=True):
                values = [peak[k, w] for k in both]
                row[0].bar([label[k] for k in both], [v.mean if v else 0 for v in values],
                           0.6, color=list(both.values()),
                           yerr=[(v.half or 0) if v else 0 for v in values],
                           error_kw={"elinewidth": 0.9, "ecolor": draw.INK})  # fmt: skip
                draw.plain(row[0])
                row[0].set_ylabel("KB")
                row[0].set_title(w.upper(), loc="left", fontsize=10.5, fontweight="bold", pad=3)
                curves = [("homa", label[k], both[k], bins[k, w]) for k in both if (k, w) in bins]
                if curves:
                    draw.slowdown_axis(row[1], panel_of(row[1], curves))
                    draw.plain(row[1])
                    draw.size_axis(row[1], curves[0][3], label=w == "w5")
                    label_ends(row[1], curves)
            return finish(figure, stem)

    queue = [1 / s.mean for s in less.values() if s and s.mean]
    cost = [s.mean for s in price.values() if isinstance(s, Stat)]
    return Output(
        f"Short queues: preset {name} against the default",
        ["workload", "preset", "peak_kb", "peak_ci95", "p99_slowdown", "p99_ci95"],
        [[w, label[k], *cell(peak[k, w]), *cell(tail[k, w])] for w in WORKLOADS for k in both],
        rows,
        paint,
        {
            "queue_factor": {w: 1 / s.mean for w, s in less.items() if s and s.mean},
            "p99_price": {w: s.mean for w, s in price.items() if isinstance(s, Stat)},
            "worst_queue_factor": min(queue) if queue else None,
            "worst_p99_price": max(cost) if cost else None,
            "p99_price_worst_tenth": worst,
            "worst_p99_price_any_tenth": max(worst.values()) if worst else None,
            "bins": {
                f"{label[k]}.{w}": [
                    dict(zip(COLUMNS, r, strict=True)) for r in records_of((), rows_)
                ]
                for (k, w), rows_ in bins.items()
            },
        },
        [
            "P99 of all messages is that of the long ones; the price for shorter messages is in the row "
            "of the worst tenth of the sizes and in the curves."
        ],
    )


FIGURES = [Figure("lowqueue", "the preset for short queues against the default", lowqueue)]
