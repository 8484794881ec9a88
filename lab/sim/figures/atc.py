# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""ATC'21 Figures 3 to 6 and §5.5 in simulation: 40 hosts, 25 Gbit/s, one switch, RPCs.

The paper measured a cluster, where the hosts' software queues too; here software only takes
time (7.2 µs a packet and way for every protocol, so that 100 bytes are echoed in 15.1 µs as measured
there). So the shape is to be compared, Homa against TCP and DCTCP, not the microseconds.
"""

from __future__ import annotations

from pathlib import Path

from lab.bench.histogram import Histogram
from lab.bench.histogram import merge as merge_histograms
from lab.sim import compare, draw
from lab.sim.figures.base import (
    Figure,
    Options,
    Output,
    Points,
    bins_of,
    cell,
    finish,
    means,
)
from lab.sim.figures.slowdown import COLUMNS, label_ends, panel_of, records_of
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.spec import Spec, merge
from lab.sim.stats import Stat, stat

WORKLOADS = ("w2", "w3", "w4", "w5")
PROTOCOLS = ("homa", "dctcp", "tcp")
_FULL = {"w2": (5, 50), "w3": (10, 100), "w4": (20, 200), "w5": (20, 200)}
_QUICK = {"w2": (2, 3), "w3": (3, 6), "w4": (8, 12), "w5": (8, 12)}
_SOFTWARE = {"send-delay": "3600ns", "receive-delay": "3600ns"}


def atc(protocol: str, workload: str, load: float, options: Options, **more: object) -> Spec:
    """A run in the cluster of ATC'21."""
    warmup, measure = (_QUICK if options.quick else _FULL)[workload]
    base: Spec = {
        "protocol": protocol,
        "topology": "one-switch",
        "hosts": 40,
        "link": "25gbit",
        "headers": "true",
        "mode": "rpc",
        "workload": workload,
        "cut": 1000000,
        "load": round(load, 4),
        "load-kind": "wire",
        "warmup": f"{warmup * options.scale:.6g}ms",
        "measure": f"{measure * options.scale:.6g}ms",
        "drain": f"{max(5.0, 4 * measure * options.scale):.6g}ms",
        **_SOFTWARE,
    }
    return merge(base, {"preset": "linux"} if protocol == "homa" else {}, dict(more))


def _words(options: Options) -> str:
    return f"RPCs among 40 hosts at 25 Gbit/s, one switch; true headers; {options.words()}"


def _standard(lab: Lab, options: Options, load: float = 0.8) -> Points:
    """The runs of Figures 3 and 4."""
    chosen = options.chosen(PROTOCOLS)
    return Points(
        lab, options, {(p, w): atc(p, w, load, options) for w in WORKLOADS for p in chosen}
    )


def _ratios(points: Points) -> dict[tuple[str, str], Stat]:
    """P99 of short messages: another protocol over Homa, seed by seed."""
    found = {}
    for w in WORKLOADS:
        for p in ("tcp", "dctcp"):
            pairs = zip(points[p, w], points["homa", w], strict=False)
            value = stat(
                a["sim"]["short"]["p99_us"] / b["sim"]["short"]["p99_us"]
                for a, b in pairs
                if b["sim"]["short"]["p99_us"]
            )
            if value:
                found[p, w] = value
    return found


def _rows(points: Points) -> list[compare.Row]:
    theirs = published()["atc"]
    rows = []
    for (p, w), value in _ratios(points).items():
        paper = theirs[p][w][1] / theirs["homa"][w][1]
        rows.append(
            compare.Row(
                f"{w.upper()}, short messages, P99 of {draw.TITLES[p]} to Homa",
                paper,
                value,
                "",
                f"≥ {theirs['ratio']}",
                value.mean >= theirs["ratio"],
                1,
            )
        )
    for p in PROTOCOLS:
        for w in WORKLOADS:
            for index, name in enumerate(("P50", "P99")):
                ours = points.stat((p, w), "sim", "short", f"p{name[1:]}_us")
                rows.append(
                    compare.info(
                        f"{draw.TITLES[p]} {w.upper()}, short messages, {name}",
                        theirs[p][w][index],
                        ours,
                        "µs",
                        1,
                    )
                )
    return rows


def _values(points: Points) -> dict[str, object]:
    ratios = {f"{p}.{w}": value.mean for (p, w), value in _ratios(points).items()}
    return {"short_p99_ratio": ratios, "worst_ratio": min(ratios.values()) if ratios else None}


_NOTES = [
    "Load: 80 % of the links' wire capacity for all workloads. The paper's cluster reached that "
    "with W4 and W5; with W2 and W3 software limited it to 3.2 and 14 Gbit/s.",
    "The paper's hosts queue in software, ours do not: compare ratios, not microseconds.",
]


def atc3(lab: Lab, options: Options) -> Output:
    """Slowdown by message size, P50 and P99."""
    points = _standard(lab, options)
    bins = {key: bins_of(points[key]) for key in points.keys()}

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(10.6, 12.4, 4, 1) as (figure, panels):
            figure.subplots_adjust(left=0.07, right=0.9, top=0.925, bottom=0.055, hspace=0.5)
            draw.headline(
                figure,
                "Slowdown of RPCs by message size, 80 % load (ATC’21, Figure 3, simulated)",
                _words(options) + "; solid: P99, dotted: median",
                0.07,
            )
            for panel, w in zip(panels[:, 0], WORKLOADS, strict=True):
                curves = [(p, draw.TITLES[p], "", bins[p, w]) for p in PROTOCOLS if (p, w) in bins]
                if not curves:
                    continue
                highest = panel_of(panel, curves)
                for p, _, _, rows in curves:
                    xs = [(r["from"] + r["to"]) / 2 for r in rows]
                    draw.curve(panel, xs, means(rows, "p50"), p, marker=None, linewidth=1.2,
                               linestyle=(0, (1, 1.4)))  # fmt: skip
                draw.plain(panel)
                draw.slowdown_axis(panel, highest)
                draw.size_axis(panel, curves[0][3], label=w == WORKLOADS[-1])
                panel.set_ylabel("slowdown")
                panel.set_title(w.upper(), loc="left", fontsize=10.5, fontweight="bold", pad=3)
                label_ends(panel, curves)
            return finish(figure, stem)

    return Output(
        "ATC'21 Figure 3, simulated: slowdown of RPCs by message size",
        ["workload", "protocol", *COLUMNS],
        [r for (p, w), part in bins.items() for r in records_of((w, p), part)],
        _rows(points),
        paint,
        _values(points),
        list(_NOTES),
    )


def _short(results: list[dict]) -> Histogram:
    """Round trips of the shortest tenth of the messages, all seeds, ns."""
    parts = []
    for result in results:
        deciles = result.get("deciles") or []
        if deciles and deciles[0].get("latency_ns", {}).get("count"):
            parts.append(Histogram.from_json(deciles[0]["latency_ns"]["histogram"]))
    return merge_histograms(parts)


_PERCENTS = (
    0.1, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.9, 99.95, 99.99,
)  # fmt: skip


def atc4(lab: Lab, options: Options) -> Output:
    """How long short messages take: the whole distribution."""
    points = _standard(lab, options)
    shapes = {key: _short(points[key]) for key in points.keys()}
    records = [
        [w, p, percent, f"{value / 1e3:.4g}"]
        for (p, w), shape in shapes.items()
        for percent in _PERCENTS
        if (value := shape.percentile(percent)) is not None
    ]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(10.6, 7.6, 2, 2, sharex=True, sharey=True) as (figure, panels):
            figure.subplots_adjust(left=0.105, right=0.985, top=0.855, bottom=0.08, hspace=0.2,
                                   wspace=0.08)  # fmt: skip
            draw.headline(
                figure,
                "Round trips of the shortest tenth of messages, 80 % load (ATC’21, Figure 4, simulated)",
                _words(options) + "; diamonds: the paper's P99",
                0.105,
            )
            for panel, w in zip(panels.flat, WORKLOADS, strict=True):
                _tail_panel(panel, w, shapes)
            for panel in panels[-1]:
                panel.set_xlabel("round trip, µs")
            for panel in panels[:, 0]:
                panel.set_ylabel("share of messages that take longer")
            draw.legend(figure, *panels[0, 0].get_legend_handles_labels())
            return finish(figure, stem)

    return Output(
        "ATC'21 Figure 4, simulated: latency of short messages",
        ["workload", "protocol", "percentile", "us"],
        records,
        _rows(points),
        paint,
        _values(points),
        list(_NOTES),
    )


def _tail_panel(panel, workload: str, shapes: dict) -> None:  # noqa: ANN001
    theirs = published()["atc"]
    draw.plain(panel, "both")
    panel.set_xscale("log")
    panel.set_yscale("log")
    for p in PROTOCOLS:
        shape = shapes.get((p, workload))
        if not shape or not shape.count:
            continue
        seen, xs, ys = 0, [], []
        for value in sorted(shape.counts):
            xs.append(value / 1e3)
            ys.append(1 - seen / shape.count)
            seen += shape.counts[value]
        panel.step(xs, ys, where="post", color=draw.COLORS[p], linewidth=2 if p == "homa" else 1.5,
                   linestyle=draw.DASHES.get(p, "-"), label=draw.TITLES[p])  # fmt: skip
        panel.plot(theirs[p][workload][1], 0.01, "D", color=draw.COLORS[p], markersize=6,
                   markeredgecolor=draw.PAPER, markeredgewidth=0.9, zorder=5)  # fmt: skip
    from matplotlib.ticker import FuncFormatter, NullFormatter

    panel.set_ylim(1e-4, 1)
    panel.set_yticks([1, 0.1, 0.01, 0.001, 0.0001], ["1", "10 %", "1 % (P99)", "0.1 %", "0.01 %"])
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.set_title(workload.upper(), loc="left", fontsize=10.5, fontweight="bold", pad=3)


LOADS = (0.5, 0.8)


def atc5(lab: Lab, options: Options) -> Output:
    """Two loads."""
    chosen = options.chosen(PROTOCOLS)
    points = Points(
        lab,
        options,
        {
            (p, w, load): atc(p, w, load, options)
            for w in ("w3", "w4")
            for p in chosen
            for load in LOADS
        },
    )
    bins = {key: bins_of(points[key]) for key in points.keys()}

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(10.6, 7.0, 2, 1) as (figure, panels):
            figure.subplots_adjust(left=0.07, right=0.875, top=0.87, bottom=0.1, hspace=0.5)
            draw.headline(
                figure,
                "P99 slowdown of RPCs at 50 % and 80 % load (ATC’21, Figure 5, simulated)",
                _words(options) + "; thin: 50 %",
                0.07,
            )
            for panel, w in zip(panels[:, 0], ("w3", "w4"), strict=True):
                curves = []
                for p in chosen:
                    for load in LOADS:
                        rows = bins.get((p, w, load), [])
                        if rows:
                            curves.append((p, f"{draw.TITLES[p]} {100 * load:.0f} %", "", rows))
                if not curves:
                    continue
                highest = 1.0
                for p, label, _, rows in curves:
                    thin = label.endswith("50 %")
                    xs = [(r["from"] + r["to"]) / 2 for r in rows]
                    draw.curve(panel, xs, means(rows, "p99"), p, linewidth=1.0 if thin else 2.0,
                               alpha=0.7 if thin else 1, markersize=3 if thin else 4.5)  # fmt: skip
                    highest = max([highest, *(v for v in means(rows, "p99") if v)])
                draw.plain(panel)
                draw.slowdown_axis(panel, highest)
                draw.size_axis(panel, curves[0][3], label=w == "w4")
                panel.set_ylabel("P99 slowdown")
                panel.set_title(w.upper(), loc="left", fontsize=10.5, fontweight="bold", pad=3)
                label_ends(panel, curves)
            return finish(figure, stem)

    rows = [
        compare.info(
            f"{draw.TITLES[p]} {w.upper()} at {100 * load:.0f} %, short messages, P99",
            published()["atc"][p][w][1] if load == 0.8 else None,
            points.stat((p, w, load), "sim", "short", "p99_us"),
            "µs",
            1,
        )
        for w in ("w3", "w4")
        for p in chosen
        for load in LOADS
    ]
    return Output(
        "ATC'21 Figure 5, simulated: 50 % and 80 % load",
        ["workload", "protocol", "load", *COLUMNS],
        [r for (p, w, load), part in bins.items() for r in records_of((w, p, load), part)],
        rows,
        paint,
        {},
        list(_NOTES),
    )


PRIORITIES = (1, 2, 3, 4, 5, 6, 7, 8)


def atc6(lab: Lab, options: Options) -> Output:
    """How many priorities are enough."""
    levels = (1, 2, 4, 8) if options.quick else PRIORITIES
    specs = {
        (w, n): atc("homa", w, 0.8, options, set={"num_priorities": n})
        for w in WORKLOADS
        for n in levels
    }
    points = Points(lab, options, specs)
    short = {key: points.stat(key, "sim", "short", "p99_us") for key in specs}
    overall = {key: points.stat(key, "slowdown", "p99") for key in specs}
    colors = dict(zip(WORKLOADS, (draw.BLUE, draw.ORANGE, draw.GREEN, draw.RED), strict=True))

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.8, 4.4, 1, 2) as (figure, panels):
            figure.subplots_adjust(left=0.07, right=0.95, top=0.78, bottom=0.12, wspace=0.28)
            draw.headline(figure, "How many priorities does Homa need? 80 % load (ATC’21, Figure 6, simulated)",
                          _words(options), 0.07)  # fmt: skip
            for panel, data, label in zip(
                panels[0], (short, overall),
                ("P99 of the shortest tenth, µs", "P99 slowdown, all messages"), strict=True,
            ):  # fmt: skip
                draw.plain(panel)
                ends, top = [], 1.0
                for w in WORKLOADS:
                    here = [(n, data[w, n]) for n in levels if data[w, n]]
                    if not here:
                        continue
                    panel.errorbar([n for n, _ in here], [s.mean for _, s in here],
                                   yerr=[s.half or 0 for _, s in here], color=colors[w],
                                   marker="o", markersize=4.5, linewidth=1.7, elinewidth=0.8,
                                   capsize=2)  # fmt: skip
                    ends.append((here[-1][1].mean, w.upper(), colors[w]))
                    top = max([top, *(s.mean for _, s in here)])
                panel.set_ylim(0, top * 1.15)
                panel.set_xticks(levels)
                panel.set_xlabel("priorities")
                panel.set_title(label, loc="left", fontsize=9.5)
                draw.names(panel, ends, log=False)
            return finish(figure, stem)

    rows = [
        compare.info(
            f"{w.upper()}, {n} priorities, short messages, P99", None, short[w, n], "µs", 1
        )
        for w in WORKLOADS
        for n in levels
    ]
    return Output(
        "ATC'21 Figure 6, simulated: number of priorities",
        ["workload", "priorities", "short_p99_us", "short_ci95", "p99_slowdown", "slowdown_ci95"],
        [[w, n, *cell(short[w, n]), *cell(overall[w, n])] for w in WORKLOADS for n in levels],
        rows,
        paint,
        {},
        ["The facts that this project keeps of the paper have no numbers of its Figure 6."],
    )


# ATC'21's rates of W2 and W3 over its links'; W4 and W5 ran at 80 %.
_PAPER_LOAD = {"w2": 0.128, "w3": 0.56}


def atc55(lab: Lab, options: Options) -> Output:
    """Buffer that the switch needs."""
    chosen = options.chosen(PROTOCOLS)
    points = Points(
        lab,
        options,
        {(p, w): atc(p, w, _PAPER_LOAD.get(w, 0.8), options) for w in WORKLOADS for p in chosen},
    )
    peak = {
        (p, w): points.stat((p, w), "sim", "switch_peak_bytes", scale=1e-3)
        for p in chosen
        for w in WORKLOADS
    }
    theirs = published()["atc55"]["peak"]
    rows = [
        compare.info(
            f"{draw.TITLES[p]} {w.upper()}, peak of the switch's buffer",
            theirs.get(w) if p == "homa" else None,
            peak[p, w],
            "KB",
            0,
        )
        for p in chosen
        for w in WORKLOADS
    ]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(7.8, 4.4) as (figure, panels):
            figure.subplots_adjust(left=0.1, right=0.985, top=0.77, bottom=0.08)
            draw.headline(figure, "Peak of the switch’s buffer (ATC’21, §5.5, simulated)",
                          _words(options), 0.1)  # fmt: skip
            panel = panels[0, 0]
            draw.plain(panel)
            width = 0.8 / len(chosen)
            for index, p in enumerate(chosen):
                xs = [n + (index - (len(chosen) - 1) / 2) * width for n in range(len(WORKLOADS))]
                values = [peak[p, w] for w in WORKLOADS]
                panel.bar(xs, [v.mean if v else 0 for v in values], width * 0.9,
                          color=draw.COLORS[p], label=draw.TITLES[p],
                          yerr=[(v.half or 0) if v else 0 for v in values],
                          error_kw={"elinewidth": 0.8, "ecolor": draw.INK})  # fmt: skip
            for at, w in enumerate(WORKLOADS):
                if w in theirs:
                    panel.plot([at - 0.42, at - 0.42 + width], [theirs[w]] * 2, color=draw.PAPER,
                               linewidth=2, label="published (Homa)" if w == "w2" else None)  # fmt: skip
            panel.set_yscale("log")
            panel.set_ylim(30, 40000)
            from matplotlib.ticker import FuncFormatter

            panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
            panel.set_xticks(range(len(WORKLOADS)), [w.upper() for w in WORKLOADS], fontsize=10)
            panel.tick_params(axis="x", length=0)
            panel.set_ylabel("KB, all ports together")
            draw.legend(figure, *panel.get_legend_handles_labels())
            return finish(figure, stem)

    return Output(
        "ATC'21 §5.5, simulated: peak of the switch's buffer",
        ["workload", "protocol", "peak_kb", "ci95"],
        [[w, p, *cell(peak[p, w])] for p in chosen for w in WORKLOADS],
        rows,
        paint,
        {f"{p}.{w}": s.mean for (p, w), s in peak.items() if s},
        [
            "Loads as in the paper's cluster: W2 at 3.2 and W3 at 14 of 25 Gbit/s (software limited "
            "it), W4 and W5 at 80 %. All ports of the switch together, looked at 250 times a run, so the true peak is higher.",
        ],
    )


FIGURES = [
    Figure("atc3", "slowdown of RPCs by message size: Homa, TCP, DCTCP, W2 to W5, 80 %", atc3),
    Figure("atc4", "latency of short messages, whole distribution", atc4),
    Figure("atc5", "slowdown at 50 % and 80 % load", atc5),
    Figure("atc6", "number of priorities, 1 to 8", atc6),
    Figure("atc55", "peak of the switch's buffer (§5.5)", atc55),
]
