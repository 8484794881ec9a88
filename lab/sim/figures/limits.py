# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How much load the network carries: SIGCOMM'18 Figures 12 (by search) and 13 (waste)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.sim import compare, draw, program
from lab.sim.figures.base import (
    WORKLOADS,
    Figure,
    Options,
    Output,
    Points,
    cell,
    finish,
    network_words,
    sigcomm,
)
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.spec import Spec, merge
from lab.sim.stats import Stat, stat
from lab.sim.sweep import pick

PROTOCOLS = ("homa", "pfabric", "phost", "pias", "ndp")
LOWEST, HIGHEST = 0.40, 1.00
# Protocols with other settings, shown as protocols of their own: pFabric and PIAS ran in ns-2 in the
# study, which counted no Ethernet framing and no shortest frame.
VARIANTS = {"pfabric-ns2": "pfabric", "pias-ns2": "pias"}
_NS2 = "ns2-sizes"


@dataclass(frozen=True)
class Limit:
    """The highest load that was carried and what the receivers' links did there, 0 to 1."""

    load: float
    application: float
    total: float


def stable(result: dict) -> bool:
    """Whether the network kept up with the arrivals."""
    return bool(result.get("sim", {}).get("backlog", {}).get("stable", False))


def bisect(step: float) -> Iterator[float]:
    """Loads to try; send() whether each was carried. Ends when the limit is known to `step`.

    Returns nothing itself: the highest load that was carried is the caller's to keep.
    """
    low, high = LOWEST, HIGHEST
    while high - low > step * 1.001:
        load = round((low + high) / 2, 4)
        carried = yield load
        low, high = (load, high) if carried else (low, load)


def search(lab: Lab, cases: dict[object, Spec], step: float) -> dict[object, Limit | None]:
    """The limit of every case; all searches advance together so that all cores have work."""
    searches = {key: bisect(step) for key in cases}
    wanted = {key: next(one) for key, one in searches.items()}
    best: dict[object, Limit | None] = dict.fromkeys(cases)
    while wanted:
        keys = list(wanted)
        found = lab.results([merge(cases[key], {"load": wanted[key]}) for key in keys])
        for key, result in zip(keys, found, strict=True):
            carried = result is not None and stable(result)
            if carried and result:
                use = result["sim"]["utilisation"]
                best[key] = Limit(wanted[key], use["application"], use["total"])
            try:
                wanted[key] = searches[key].send(carried)
            except StopIteration:
                del wanted[key]
    return best


def _case(protocol: str, workload: str, options: Options) -> Spec:
    if protocol in VARIANTS:
        return sigcomm(workload, 0.8, options, protocol=VARIANTS[protocol], set={_NS2: 1})
    return sigcomm(workload, 0.8, options, protocol=protocol)


def _title(protocol: str) -> str:
    if protocol in VARIANTS:
        return f"{draw.TITLES[VARIANTS[protocol]]} (ns-2 sizes)"
    return draw.TITLES[protocol]


def fig12(lab: Lab, options: Options) -> Output:
    """Highest load that each protocol sustains."""
    step = 0.04 if options.quick else 0.01
    protocols = options.chosen(PROTOCOLS)
    if options.quick and not options.protocols:
        protocols = ["homa"]  # the others: without --quick, or --protocols all
    protocols += [v for v, p in VARIANTS.items() if p in protocols and program.has_setting(p, _NS2)]
    cases = {
        (p, w, seed): merge(_case(p, w, options), options.limit_timing(w), {"seed": seed})
        for p in protocols
        for w in WORKLOADS
        for seed in options.seed_list()
    }
    limits = search(lab, cases, step)
    use: dict[tuple[str, str], list[Stat | None]] = {}
    for p in protocols:
        for w in WORKLOADS:
            found = [limit for s in options.seed_list() if (limit := limits[p, w, s])]
            use[p, w] = [
                stat(x.application * 100 for x in found),
                stat(x.total * 100 for x in found),
                stat(x.load * 100 for x in found),
            ]
    theirs = published()["fig12"]
    rows = []
    for (p, w), (application, total, _) in use.items():
        numbers = theirs.get(VARIANTS.get(p, p), {}).get(w)
        for index, (name, ours) in enumerate((("application", application), ("total", total))):
            what = f"{_title(p)} {w.upper()}, {name}"
            if numbers and p == "homa":
                rows.append(compare.within(what, numbers[index], ours, theirs["points"]))
            else:
                rows.append(
                    compare.info(what, numbers[index] if numbers else None, ours, "%", 1)
                )

    def paint(stem: Path) -> list[Path]:
        return _paint_limits(stem, options, protocols, use)

    gaps = [
        ours[i].mean - theirs["homa"][w][i]
        for (p, w), ours in use.items()
        for i in (0, 1)
        if p == "homa" and ours[i]
    ]
    return Output(
        "Figure 12: highest sustainable load",
        ["workload", "protocol", "application", "application_ci95", "total", "total_ci95", "load", "load_ci95"],
        [[w, p, *(v for s in values for v in cell(s))] for (p, w), values in use.items()],
        rows,
        paint,
        {
            "homa_worst_gap_points": min(gaps) if len(gaps) == 10 else None,
            "limits": {
                f"{p}.{w}": {"application": v[0].mean, "total": v[1].mean}
                for (p, w), v in use.items()
                if v[0] and v[1]
            },
        },
        [
            f"The search halves the interval from {LOWEST:.0%} to {HIGHEST:.0%} until it is "
            f"{step:.0%} wide, for each seed by itself; a load counts as carried if the backlog "
            "does not grow (docs/simulator.md)."
        ],
    )  # fmt: skip


def _paint_limits(stem: Path, options: Options, protocols: list[str], use: dict) -> list[Path]:
    theirs = published()["fig12"]
    with draw.canvas(10.2, 4.9) as (figure, panels):
        figure.subplots_adjust(left=0.065, right=0.985, top=0.785, bottom=0.09)
        draw.headline(
            figure,
            "Highest load that the network sustains (SIGCOMM’18, Figure 12)",
            network_words(options),
            0.065,
        )
        panel = panels[0, 0]
        draw.plain(panel)
        width = 0.8 / len(protocols)
        for at, w in enumerate(WORKLOADS):
            for index, p in enumerate(protocols):
                x = at + (index - (len(protocols) - 1) / 2) * width
                application, total, _ = use[p, w]
                color = draw.COLORS[VARIANTS.get(p, p)]
                if application and total:
                    panel.bar(x, total.mean, width * 0.88, color=color, alpha=0.38)
                    panel.bar(
                        x, application.mean, width * 0.88, color=color, yerr=application.half,
                        error_kw={"elinewidth": 0.8, "ecolor": draw.INK},
                    )  # fmt: skip
                    panel.annotate(
                        _title(p), (x, 1.5), rotation=90, ha="center", va="bottom",
                        fontsize=8.2, color="white", fontweight="bold",
                    )  # fmt: skip
                for value in theirs.get(VARIANTS.get(p, p), {}).get(w, []):
                    panel.plot(
                        [x - width * 0.46, x + width * 0.46], [value] * 2,
                        color=draw.PAPER, linewidth=1.6, solid_capstyle="butt", zorder=5,
                    )  # fmt: skip
        panel.set_xticks(range(len(WORKLOADS)), [w.upper() for w in WORKLOADS], fontsize=10)
        panel.tick_params(axis="x", length=0)
        panel.set_ylim(0, 100)
        panel.set_ylabel("% of the receivers' links")
        _limit_legend(figure, protocols[0])
        return finish(figure, stem)


def _limit_legend(figure, protocol: str) -> None:  # noqa: ANN001
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    color = draw.COLORS[protocol]
    draw.legend(
        figure,
        [Patch(color=color), Patch(color=color, alpha=0.38), Line2D([], [], color=draw.PAPER, linewidth=1.6)],
        ["application data", "with headers, control and repeats", "published, both"],
    )


LEVELS = (1, 2, 3, 4, 5, 6, 7)
_QUICK_LEVELS = (1, 2, 4, 7)
_LOADS = (0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
_QUICK_LOADS = (0.4, 0.6, 0.75, 0.9)


def _levels_spec(options: Options, levels: int, load: float) -> Spec:
    return sigcomm(
        "w4", load, options, set={"scheduled-levels": levels, "unscheduled-levels": 1}
    )


def fig13(lab: Lab, options: Options) -> Output:
    """Receivers' bandwidth that nobody uses although messages wait, by degree of overcommitment."""
    levels = _QUICK_LEVELS if options.quick else LEVELS
    loads = _QUICK_LOADS if options.quick else _LOADS
    points = Points(
        lab, options, {(n, load): _levels_spec(options, n, load) for n in levels for load in loads}
    )
    step = 0.04 if options.quick else 0.01
    searched = [n for n in levels if not options.quick or n in (1, 7)]
    found = search(
        lab,
        {
            (n, seed): merge(
                _levels_spec(options, n, 0.8), options.limit_timing("w4"), {"seed": seed}
            )
            for n in searched
            for seed in options.seed_list()
        },
        step,
    )
    limit = {
        n: stat(one.load * 100 for s in options.seed_list() if (one := found[n, s]))
        for n in searched
    }
    waste = {key: points.stat(key, "sim", "waste", scale=100) for key in points.keys()}
    theirs = published()["fig13"]
    rows = [
        compare.about(
            f"W4, {n} scheduled level{'s' if int(n) > 1 else ''}, sustained load",
            value,
            limit.get(int(n)),
            theirs["points"],
        )
        for n, value in theirs["sustained"].items()
    ]
    rows += [
        compare.info(f"W4, {n} scheduled levels, sustained load", None, limit[n], "%", 1)
        for n in searched
        if str(n) not in theirs["sustained"]
    ]

    def paint(stem: Path) -> list[Path]:
        return _paint_waste(stem, options, levels, loads, points, waste)

    one, seven = limit.get(1), limit.get(7)
    return Output(
        "Figure 13: wasted bandwidth by load and scheduled priorities, W4",
        ["scheduled_levels", "load", "waste_percent", "waste_ci95", "stable_runs", "runs"],
        [
            [n, load, *cell(waste.get((n, load))), sum(map(stable, points[n, load])), len(points[n, load])]
            for n in levels
            for load in loads
        ],
        rows,
        paint,
        {
            "sustained_percent": {str(n): value.mean for n, value in limit.items() if value},
            "sustained_off_points": max(abs(one.mean - 63), abs(seven.mean - 89))
            if one and seven
            else None,
        },
        [
            "Wasted: the share of time in which a receiver's link is idle although the receiver "
            "knows of a message that it holds back. Points of loads that were not carried are "
            "hollow."
        ],
    )  # fmt: skip


def _paint_waste(stem: Path, options: Options, levels, loads, points: Points, waste: dict) -> list[Path]:  # noqa: ANN001
    theirs = published()["fig13"]["sustained"]
    shades = dict(zip(levels, draw.ramp(len(levels)), strict=True))
    with draw.canvas(8.6, 5.0) as (figure, panels):
        figure.subplots_adjust(left=0.08, right=0.87, top=0.85, bottom=0.11)
        draw.headline(
            figure,
            "Bandwidth wasted by too little overcommitment, W4 (SIGCOMM’18, Figure 13)",
            network_words(options),
            0.08,
        )
        panel = panels[0, 0]
        draw.plain(panel, "both")
        ends = []
        top = 10.0
        for n in levels:
            here = [(load, waste[n, load]) for load in loads if waste.get((n, load))]
            if not here:
                continue
            xs, ys = [100 * x for x, _ in here], [s.mean for _, s in here]
            top = max(top, *ys)
            panel.errorbar(
                xs, ys, yerr=[s.half or 0 for _, s in here], color=shades[n], linewidth=1.8,
                elinewidth=0.8, capsize=2,
            )  # fmt: skip
            for x, y, (load, _) in zip(xs, ys, here, strict=True):
                kept = all(map(stable, points[n, load]))
                panel.plot(
                    x, y, "o", color=shades[n], markerfacecolor=shades[n] if kept else "white",
                    markersize=5.5, zorder=4,
                )  # fmt: skip
            ends.append((ys[-1], f"{n} level{'s' if n > 1 else ''}", shades[n]))
        panel.set_xlim(min(loads) * 100 - 2, max(loads) * 100 + 2)
        panel.set_ylim(0, top * 1.12)
        for n, value in theirs.items():
            panel.axvline(value, color=draw.PAPER, linewidth=0.9, linestyle=(0, (1, 2)))
            panel.annotate(
                f"paper: {n} level{'s' if int(n) > 1 else ''} sustain{'' if int(n) > 1 else 's'} {value} %",
                (value, top * 1.1), xytext=(-3, 0), textcoords="offset points", ha="right",
                va="top", fontsize=8, rotation=90,
            )  # fmt: skip
        panel.set_xlabel("load, % of the hosts' links")
        panel.set_ylabel("wasted, % of the receivers' time")
        panel.plot([], [], "o", color=draw.GREY, label="carried")
        panel.plot([], [], "o", color=draw.GREY, markerfacecolor="white", label="not carried")
        panel.legend(loc="upper left", frameon=False, fontsize=8.5)
        draw.names(panel, ends, log=False)
        return finish(figure, stem)


def limit_of(result: dict) -> float | None:
    """Total utilisation of one run in percent, for sweeps by hand."""
    value = pick(result, ("sim", "utilisation", "total"))
    return None if value is None else 100 * value


FIGURES = [
    Figure("fig12", "highest sustainable load by protocol and workload", fig12),
    Figure("fig13", "wasted bandwidth against load for 1 to 7 scheduled priorities, W4", fig13),
]
