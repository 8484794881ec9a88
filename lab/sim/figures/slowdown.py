# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Slowdown over message size: SIGCOMM'18 Figure 10 and the sweep of unscheduled priorities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.sim import compare, draw, tails
from lab.sim.figures.base import (
    WORKLOADS,
    Figure,
    Options,
    Output,
    Points,
    bins_of,
    cell,
    finish,
    means,
    middle,
    network_words,
    sigcomm,
)
from lab.sim.figures.order import average, order
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.stats import Stat, stat
from lab.sim.tails import Few

PROTOCOLS = ("homa", "pfabric", "phost", "pias", "ndp", "oracle")
LEVELS = (1, 2, 3, 7)


def panel_of(
    panel,  # noqa: ANN001
    curves: Sequence[tuple[str, str, str, list[dict]]],
    percentile: str = "p99",
) -> float:
    """Draw (protocol, label, colour or "", bins) curves; the highest value drawn."""
    highest = 1.0
    for protocol, _, color, bins in curves:
        values = means(bins, percentile)
        more: dict[str, object] = {"color": color} if color else {}
        draw.curve(panel, [middle(row) for row in bins], values, protocol, **more)
        if protocol == "homa" and not color:
            spread = [
                (middle(r), r[percentile]) for r in bins if r[percentile] and r[percentile].half
            ]
            panel.fill_between(
                [x for x, _ in spread],
                [max(0.9, s.low) for _, s in spread],
                [s.high for _, s in spread],
                color=draw.COLORS["homa"],
                alpha=0.15,
                linewidth=0,
            )
        highest = max([highest, *(v for v in values if v)])
    return highest


def label_ends(
    panel,  # noqa: ANN001
    curves: Sequence[tuple[str, str, str, list[dict]]],
    percentile: str = "p99",
) -> None:
    """Names at the right ends of the curves."""
    ends = []
    for protocol, label, color, bins in curves:
        values = [v for v in means(bins, percentile) if v]
        if values:
            ends.append((values[-1], label, color or draw.COLORS.get(protocol, draw.INK)))
    draw.names(panel, ends)


def records_of(key: Sequence[object], bins: list[dict]) -> list[list[object]]:
    """CSV rows of one curve."""
    return [
        [
            *key,
            row["from"],
            row["to"],
            row["min_bytes"],
            row["max_bytes"],
            row["count"],
            *(value for name in ("p50", "p99") for value in cell(row[name])),
        ]
        for row in bins
    ]


COLUMNS = ["from", "to", "min_bytes", "max_bytes", "messages", "p50", "p50_ci95", "p99", "p99_ci95"]


_NDP_LOAD = 0.7  # with W1 to W4, which the paper does not have


def load_of(protocol: str, workload: str) -> float:
    """80 %, or what the published limit of a protocol allows."""
    usual = _NDP_LOAD if protocol == "ndp" else 0.8
    return published()["fig10"]["load"].get(protocol, {}).get(workload, usual)


def fig10(lab: Lab, options: Options) -> Output:
    """P99 slowdown of six protocols, five workloads, 80 % load."""
    protocols = options.chosen(PROTOCOLS)
    specs = {
        (p, w): sigcomm(w, load_of(p, w), options, protocol=p) for w in WORKLOADS for p in protocols
    }
    points = Points(lab, options, specs)
    bins = {key: bins_of(points[key]) for key in points.keys()}
    records = [r for (p, w), rows in bins.items() for r in records_of((w, p, load_of(p, w)), rows)]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(11.2, 17.0, 5, 1, sharey=False) as (figure, panels):
            figure.subplots_adjust(left=0.065, right=0.855, top=0.948, bottom=0.04, hspace=0.48)
            draw.headline(
                figure,
                "P99 slowdown by message size, 80 % load (SIGCOMM’18, Figure 10)",
                network_words(options) + "; 1 = alone on an idle network; shaded: 95 % interval",
                0.065,
            )
            for panel, workload in zip(panels[:, 0], WORKLOADS, strict=True):
                curves = [
                    (p, _label(p, workload), "", bins[p, workload])
                    for p in protocols
                    if (p, workload) in bins
                ]
                if curves:
                    _fig10_panel(panel, workload, curves)
            panels[-1, 0].set_xlabel("message size, bytes (each step: a tenth of the messages)")
            return finish(figure, stem)

    return Output(
        "Figure 10: P99 slowdown by message size",
        ["workload", "protocol", "load", *COLUMNS],
        records,
        _fig10_rows(points, bins, protocols),
        paint,
        _fig10_values(points, bins, protocols),
        [
            "pHost and NDP do not carry 80 % in the paper either; like there they run at the "
            "highest load that the paper gives for them (CSV column load).",
            "The paper has NDP for W5 only: its simulator knew full packets only. Ours cuts the "
            "last packet, so it runs with all workloads.",
            "Every protocol's slowdown has the same denominator: Homa's packets alone between "
            "the same two hosts.",
        ],
    )


def _label(protocol: str, workload: str) -> str:
    load = load_of(protocol, workload)
    return draw.TITLES[protocol] + ("" if load == 0.8 else f" at {100 * load:.0f} %")


def _fig10_panel(panel, workload: str, curves: list) -> None:  # noqa: ANN001
    highest = panel_of(panel, curves)
    draw.plain(panel)
    draw.slowdown_axis(panel, min(highest, 1000))
    draw.size_axis(panel, curves[0][3], label=False)
    panel.set_ylabel("P99 slowdown")
    panel.set_title(workload.upper(), loc="left", fontsize=10.5, fontweight="bold", pad=3)
    limit = published()["fig10"]["short_p99"]
    panel.axvline(SHORT, color=draw.GREY, linewidth=0.7, linestyle=(0, (1, 3)))
    panel.axhline(limit, color=draw.PAPER, linewidth=0.8, linestyle=(0, (1, 2)))
    panel.annotate(
        f"paper: short messages of Homa ≤ {limit}",
        (0.004, limit),
        xytext=(0, 2),
        textcoords="offset points",
        fontsize=7.5,
        color=draw.PAPER,
    )
    label_ends(panel, curves)


SHORT = 0.2  # Figure 11's caption: the smallest 20 % of all messages


def short_p99(results: list[dict], workload: str) -> Stat | Few | None:
    """P99 slowdown of short messages: the smallest fifth, of W5 those of one packet."""
    if workload == "w5":
        return tails.tail(tails.at(results, "sim", "single_packet"), 99)
    return tails.tail(tails.bins(results, SHORT), 99)


def half_p99(results: list[dict]) -> Stat | Few | None:
    """The same of the smallest half, which this project called short before."""
    return tails.tail(tails.bins(results, 0.5), 99)


def _fig10_rows(points: Points, bins: dict, protocols: list[str]) -> list[compare.Row]:
    theirs = published()["fig10"]
    goals = published()["goals"]
    rows = []
    for workload in WORKLOADS if "homa" in protocols else ():
        name = f"Homa {workload.upper()}"
        short = "single-packet messages" if workload == "w5" else "smallest 20 % of the messages"
        ours = short_p99(points["homa", workload], workload)
        rows.append(compare.at_most(f"{name}, {short}, P99", theirs["short_p99"], ours))
        if workload == "w5":
            continue
        ours = half_p99(points["homa", workload])
        rows.append(compare.info(f"{name}, smallest half of the messages, P99", None, ours))
        ours = points.tail(("homa", workload), "sim", "single_packet")
        rows.append(compare.info(f"{name}, single-packet messages, P99", None, ours))
    if "pias" in protocols:
        ours = points.tail(("pias", "w4"), "sim", "multi_packet")
        limit = theirs["pias"]["w4_multi_p99"]
        rows.append(compare.at_least("PIAS W4, multi-packet messages, P99", limit, ours))
    if "ndp" in protocols:
        waste = points.stat(("ndp", "w5"), "sim", "waste", scale=100)
        limit = theirs["ndp"]["waste"] * 100
        what = "NDP W5 at 70 %, wasted bandwidth"
        rows.append(compare.about(what, limit, waste, goals["ndp_waste_points"]))
    checks = order(bins, protocols)
    if checks:
        share = Stat(100 * sum(c["holds"] for c in checks) / len(checks), None, 1)
        rows.append(compare.about("what the paper's text orders (below)", 100, share, 0))
    return rows


def _fig10_values(points: Points, bins: dict, protocols: list[str]) -> dict[str, object]:
    short = {w: short_p99(points["homa", w], w) for w in WORKLOADS}
    known = {w: value.mean for w, value in short.items() if isinstance(value, Stat)}
    checks = order(bins, protocols)
    pias = tails.known(points.tail(("pias", "w4"), "sim", "multi_packet"))
    waste = points.stat(("ndp", "w5"), "sim", "waste", scale=100)
    theirs = 100 * published()["fig10"]["ndp"]["waste"]
    return {
        "short_p99": known,
        "short_n": {w: value.samples for w, value in short.items() if value},
        "short_p99_worst": max(known.values()) if known else None,
        "average_p99": {
            f"{p}.{w}": value.mean for (p, w), rows in bins.items() if (value := average(rows))
        },
        "order": checks,
        "order_held_percent": 100 * sum(c["holds"] for c in checks) / len(checks)
        if checks
        else None,
        "pias_w4_multi_p99": pias.mean if pias else None,
        "ndp_waste_percent": waste.mean if waste else None,
        "ndp_waste_off_points": abs(waste.mean - theirs) if waste else None,
    }


def _averages(worse: list[dict], better: list[dict]) -> list[float]:
    """Seed by seed: geometric mean of P99 over all sizes, one to the other."""
    found = []
    for a, b in zip(worse, better, strict=False):
        one, other = average(bins_of([a])), average(bins_of([b]))
        if one and other:
            found.append(one.mean / other.mean)
    return found


def unsched(lab: Lab, options: Options) -> Output:
    """W1 with 1, 2, 3 and 7 levels for unscheduled packets."""
    specs = {
        n: sigcomm("w1", 0.8, options, set={"unscheduled-levels": n, "scheduled-levels": 1})
        for n in LEVELS
    }
    points = Points(lab, options, specs)
    bins = {n: bins_of(points[n]) for n in points.keys()}
    tail = {n: points.tail(n, "slowdown") for n in LEVELS}
    shades = dict(zip(LEVELS, draw.ramp(len(LEVELS)), strict=True))
    ratio = stat(_averages(points[1], points[7]))

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.2, 4.6) as (figure, panels):
            figure.subplots_adjust(left=0.075, right=0.875, top=0.83, bottom=0.2)
            draw.headline(
                figure,
                "How many unscheduled priorities? W1, 80 % load (SIGCOMM’18, end of §5)",
                network_words(options) + "; one scheduled level",
                0.075,
            )
            panel = panels[0, 0]
            curves = [
                ("homa", f"{n} level{'s' if n > 1 else ''}", shades[n], bins[n])
                for n in LEVELS
                if n in bins
            ]
            highest = panel_of(panel, curves)
            draw.plain(panel)
            draw.slowdown_axis(panel, highest, 6)
            draw.size_axis(panel, curves[0][3])
            panel.set_ylabel("P99 slowdown")
            label_ends(panel, curves)
            return finish(figure, stem)

    factor = published()["unsched"]["one_level_factor"]
    rows = [compare.info("W1, P99 of one level to that of seven (mean over sizes)", factor, ratio)]
    rows += [
        compare.info(f"W1, {n} level{'s' if n > 1 else ''}, P99 of all messages", None, tail[n])
        for n in LEVELS
    ]
    return Output(
        "Sweep of unscheduled priorities, W1",
        ["levels", *COLUMNS],
        [r for n, part in bins.items() for r in records_of((n,), part)],
        rows,
        paint,
        {"ratio_1_to_7": ratio.mean if ratio else None},
    )


FIGURES = [
    Figure("fig10", "P99 slowdown by message size: Homa, pFabric, pHost, PIAS, NDP, oracle", fig10),
    Figure("unsched", "W1 with 1, 2, 3 and 7 unscheduled priorities", unsched),
]
