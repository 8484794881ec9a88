# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""ATC'21 Figures 3 and 4 in simulation, and the cluster of that paper, which Figures 5, 6 and §5.5
share: 40 hosts at 25 Gbit/s around a switch whose ports share 13 MB, MTU 3000, DCTCP marking at
70 KB, RPCs at the paper's rates.

The paper measured a cluster, where the hosts' software queues too; here software only takes
time (7.2 µs a packet and way for every protocol, so that 100 bytes are echoed in 15.1 µs as measured
there). So the shape is to be compared, Homa against TCP and DCTCP, not the microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.bench.histogram import merge as merge_histograms
from lab.sim import compare, draw, tails
from lab.sim.figures.base import (
    Figure,
    Options,
    Output,
    Points,
    bins_of,
    finish,
    means,
)
from lab.sim.figures.slowdown import COLUMNS, label_ends, panel_of, records_of
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.spec import Spec, merge
from lab.sim.stats import Stat
from lab.sim.tails import Few

WORKLOADS = ("w2", "w3", "w4", "w5")
PROTOCOLS = ("homa", "dctcp", "tcp")
# Simulated ms to warm up and to measure. Quick: several thousand of the shortest tenth with three seeds.
_FULL = {"w2": (5, 50), "w3": (10, 100), "w4": (20, 200), "w5": (30, 400)}
_QUICK = {"w2": (2, 8), "w3": (3, 15), "w4": (8, 30), "w5": (10, 80)}
_SOFTWARE = {"send-delay": "3600ns", "receive-delay": "3600ns"}
SLOW = "slow"  # (SLOW, protocol, workload): a run of slower software, drawn beside the protocol's
_ALPHA = 256  # of the shared buffer: a port may hold all of it


def atc(protocol: str, workload: str, options: Options, part: float = 1.0, **more: object) -> Spec:
    """A run in the cluster of ATC'21 at `part` of the paper's rate, as many RPCs at each."""
    setup, gbps = published()["atc"]["setup"], published()["atc"]["load"]["gbps"][workload]
    warmup, measure = (_QUICK if options.quick else _FULL)[workload]
    measure *= options.scale / part
    base: Spec = {
        "protocol": protocol,
        "topology": "one-switch",
        "hosts": setup["hosts"],
        "link": f"{setup['link_gbps']}gbit",
        "mtu": setup["mtu"],
        "headers": "true",
        "shared-buffer": f"{setup['pool_mb']}mb",
        "shared-alpha": _ALPHA,
        "mode": "rpc",
        "workload": workload,
        "cut": 1000000,
        "load": round(part * gbps / setup["link_gbps"], 5),
        "load-kind": "payload",
        "warmup": f"{warmup * options.scale:.6g}ms",
        "measure": f"{measure:.6g}ms",
        "drain": f"{max(5.0, 4 * measure):.6g}ms",
        **_SOFTWARE,
    }
    own: Spec = {}
    if protocol == "homa":
        own = {"preset": "linux"}
    elif protocol == "dctcp":
        own = {"ecn": f"{setup['ecn_kb']}kb"}
    elif protocol == "tcp":
        # As Linux finds losses. Messages take connections at random, as in the paper's benchmark.
        own = {"set": {"sack": 1}}
    return merge(base, own, dict(more))


def words(options: Options) -> str:
    """For subtitles."""
    return (
        f"RPCs among 40 hosts at 25 Gbit/s, one switch, MTU 3000, true headers; {options.words()}"
    )


def short(results: list[dict], percent: float = 99) -> Stat | Few | None:
    """Round trips of the shortest tenth of the messages, µs, as in the paper's Figure 4."""
    return tails.tail(tails.decile(results, 1), percent, 1e-3)


def _standard(lab: Lab, options: Options) -> Points:
    """The runs of Figures 3 and 4."""
    chosen = options.chosen(PROTOCOLS)
    return Points(lab, options, {(p, w): atc(p, w, options) for w in WORKLOADS for p in chosen})


def ratios(points: Points) -> dict[tuple[str, str], Stat | Few]:
    """P99 of short messages: another protocol over Homa, with the interval of the seeds'."""
    found = {}
    for w in WORKLOADS:
        for p in ("tcp", "dctcp"):
            theirs, homa = points[p, w], points["homa", w]
            value = tails.ratio(short(theirs), short(homa))
            pairs = zip(tails.decile(theirs, 1), tails.decile(homa, 1), strict=False)
            seeds = [a.percentile(99) / b.percentile(99) for a, b in pairs if a.count and b.count]
            if value := tails.with_spread(value, seeds):
                found[p, w] = value
    return found


def ratio_rows(points: Points) -> list[compare.Row]:
    """Another protocol's P99 of short messages over Homa's, beside the paper's."""
    theirs = published()["atc"]
    rows = []
    for (p, w), value in ratios(points).items():
        paper = theirs[p][w][1] / theirs["homa"][w][1]
        what = f"{w.upper()}, short messages, P99 of {draw.TITLES[p]} to Homa"
        rows.append(compare.between(what, *theirs["ratio"][p], value, published=paper))
    return rows


def _rows(points: Points) -> list[compare.Row]:
    theirs = published()["atc"]
    rows = ratio_rows(points)
    for p in PROTOCOLS:
        for w in WORKLOADS:
            for index, percent in enumerate((50, 99)):
                what = f"{draw.TITLES[p]} {w.upper()}, short messages, P{percent}"
                ours = short(points[p, w], percent)
                rows.append(compare.info(what, theirs[p][w][index], ours, "µs", 1))
    return rows


def values(points: Points) -> dict[str, object]:
    """The ratios, for the scoreboard."""
    found = {
        f"{p}.{w}": value.mean
        for (p, w), value in ratios(points).items()
        if isinstance(value, Stat)
    }
    return {"short_p99_ratio": found, "worst_outside": outside(found)}


def outside(found: dict[str, float]) -> float | None:
    """By how many times the ratio ("tcp.w4": 19) that is furthest off is outside of the published
    range, to either side; 1: none is."""
    ranges = published()["atc"]["ratio"]
    off = []
    for name, value in found.items():
        low, high = ranges[name.partition(".")[0]]
        off.append(max(low / value, value / high, 1.0))
    return max(off, default=None)


TWO_SIDED = (
    "Until 1 December 2026 goals of ratios had no upper end (at least 19 and 7). It was added after "
    "results had been seen."
)
# Their rows are judged so since.
RULE = "2: ratios within the published ranges, to both sides"
NOTES = [
    "Load: the paper's rates of message bytes, sent by each host: W2 3.2, W3 14, W4 and W5 "
    "20 Gbit/s. Short: the shortest tenth of the messages. Goals are the paper's text (Section "
    "5.2: 19 to 72 times TCP's, 7 to 83 times DCTCP's), the column beside them its numbers. "
    + TWO_SIDED,
    "The paper's hosts queue in software, ours do not: what software adds to TCP's tail, most of it "
    "with W2 and W3, is not there. Compare ratios, not microseconds.",
]


@dataclass(frozen=True)
class Look:
    """What stands around a drawing: `title` of the result, `head` and `under` of the picture; `rows`
    to compare, `values` for the scoreboard, `notes`."""

    title: str
    head: str
    under: str
    rows: list[compare.Row]
    values: dict[str, object]
    notes: list[str]

    def output(
        self,
        columns: list[str],
        records: list[list[object]],
        paint: Callable[[Path], list[Path]],
    ) -> Output:
        """With what was drawn."""
        return Output(self.title, columns, records, self.rows, paint, self.values, self.notes)


def by_size(points: Points, look: Look) -> Output:
    """Figure 3: slowdown by message size, P50 and P99, of points (protocol, workload)."""
    bins = {key: bins_of(points[key]) for key in points.keys() if key[0] in PROTOCOLS}

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(10.6, 12.4, 4, 1) as (figure, panels):
            figure.subplots_adjust(left=0.07, right=0.9, top=0.925, bottom=0.055, hspace=0.5)
            draw.headline(figure, look.head, look.under + "; solid: P99, dotted: median", 0.07)
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

    records = [r for (p, w), part in bins.items() for r in records_of((w, p), part)]
    return look.output(["workload", "protocol", *COLUMNS], records, paint)


def atc3(lab: Lab, options: Options) -> Output:
    """Slowdown by message size, P50 and P99."""
    points = _standard(lab, options)
    return by_size(
        points,
        Look(
            "ATC'21 Figure 3, simulated: slowdown of RPCs by message size",
            "Slowdown of RPCs by message size, high load (ATC’21, Figure 3, simulated)",
            words(options),
            _rows(points),
            values(points),
            list(NOTES),
        ),
    )


_PERCENTS = (
    0.1, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.9, 99.95, 99.99,
)  # fmt: skip


def distribution(points: Points, look: Look) -> Output:
    """Figure 4: round trips of the shortest tenth, of points (protocol, workload), and dotted those of (SLOW, protocol, workload)."""
    shapes = {key: merge_histograms(tails.decile(points[key], 1)) for key in points.keys()}
    records = [
        [*reversed(key), shape.count, percent, f"{value / 1e3:.4g}"]
        for key, shape in shapes.items()
        if key[0] in PROTOCOLS
        for percent in _PERCENTS
        if shape.count >= tails.LEAST and (value := shape.percentile(percent)) is not None
    ]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(10.6, 7.6, 2, 2, sharex=True, sharey=True) as (figure, panels):
            figure.subplots_adjust(left=0.105, right=0.985, top=0.855, bottom=0.08, hspace=0.2,
                                   wspace=0.08)  # fmt: skip
            draw.headline(
                figure, look.head, look.under + "; circles, diamonds: the paper's P50, P99", 0.105
            )
            for panel, w in zip(panels.flat, WORKLOADS, strict=True):
                _tail_panel(panel, w, shapes)
            for panel in panels[-1]:
                panel.set_xlabel("round trip, µs")
            for panel in panels[:, 0]:
                panel.set_ylabel("share of messages that take longer")
            draw.legend(figure, *panels[0, 0].get_legend_handles_labels())
            return finish(figure, stem)

    return look.output(["workload", "protocol", "n", "percentile", "us"], records, paint)


def atc4(lab: Lab, options: Options) -> Output:
    """How long short messages take: the whole distribution."""
    points = _standard(lab, options)
    return distribution(
        points,
        Look(
            "ATC'21 Figure 4, simulated: latency of short messages",
            "Round trips of the shortest tenth of messages, high load (ATC’21, Figure 4, simulated)",
            words(options),
            _rows(points),
            values(points),
            list(NOTES),
        ),
    )


def _longer_than(shape) -> tuple[list[float], list[float]]:  # noqa: ANN001
    """Round trips in µs, and which share of the messages takes longer."""
    seen, xs, ys = 0, [], []
    for value in sorted(shape.counts):
        xs.append(value / 1e3)
        ys.append(1 - seen / shape.count)
        seen += shape.counts[value]
    return xs, ys


def _tail_panel(panel, workload: str, shapes: dict) -> None:  # noqa: ANN001
    theirs = published()["atc"]
    draw.plain(panel, "both")
    panel.set_xscale("log")
    panel.set_yscale("log")
    for p in PROTOCOLS:
        shape, slow = shapes.get((p, workload)), shapes.get((SLOW, p, workload))
        if slow and slow.count >= tails.LEAST:
            panel.step(*_longer_than(slow), where="post", color=draw.COLORS[p], linewidth=1,
                       linestyle=(0, (1, 1.2)))  # fmt: skip
        if not shape or shape.count < tails.LEAST:
            continue
        panel.step(*_longer_than(shape), where="post", color=draw.COLORS[p],
                   linewidth=2 if p == "homa" else 1.5, linestyle=draw.DASHES.get(p, "-"),
                   label=draw.TITLES[p])  # fmt: skip
        for index, (share, mark) in enumerate(((0.5, "o"), (0.01, "D"))):
            panel.plot(theirs[p][workload][index], share, mark, color=draw.COLORS[p], markersize=6,
                       markeredgecolor=draw.PAPER, markeredgewidth=0.9, zorder=5)  # fmt: skip
    from matplotlib.ticker import FuncFormatter, NullFormatter

    panel.set_ylim(1e-4, 1)
    panel.set_yticks([1, 0.1, 0.01, 0.001, 0.0001], ["1", "10 %", "1 % (P99)", "0.1 %", "0.01 %"])
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.set_title(workload.upper(), loc="left", fontsize=10.5, fontweight="bold", pad=3)


FIGURES = [
    Figure(
        "atc3",
        "slowdown of RPCs by message size: Homa, TCP, DCTCP, W2 to W5, high load",
        atc3,
        RULE,
    ),
    Figure("atc4", "latency of short messages, whole distribution", atc4, RULE),
]
