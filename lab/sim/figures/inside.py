# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Inside Homa: causes of tail delay (Figure 11), priority use (Figure 14), queues (Table 1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lab.sim import compare, draw, tails
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
from lab.sim.stats import Stat, stat
from lab.sim.tails import Few


def _homa(lab: Lab, options: Options) -> Points:
    """Homa at 80 %; the same runs serve Figure 10, Figure 11 and Table 1."""
    return Points(lab, options, {w: sigcomm(w, 0.8, options) for w in WORKLOADS})


def short_messages(results: list[dict], workload: str) -> int:
    """Messages among which Figure 11 looks: the smallest fifth, of W5 those of one packet."""
    parts = (
        tails.at(results, "sim", "single_packet") if workload == "w5" else tails.bins(results, 0.2)
    )
    return sum(part.count for part in parts)


def counted(value: Stat | None, messages: int) -> Stat | Few | None:
    """`value` with the number of messages of which the slowest few were taken for it."""
    if value is None:
        return None
    if messages < tails.LEAST:
        return Few(messages)
    return replace(value, samples=messages)


def fig11(lab: Lab, options: Options) -> Output:
    """Of short messages near P99: waiting behind other packets, and behind the rest of one."""
    points = _homa(lab, options)
    wait, lag, share = (
        {w: points.stat(w, "sim", "causes", name, scale=scale) for w in WORKLOADS}
        for name, scale in (("wait_us", 1), ("lag_us", 1), ("share_lag", 100))
    )  # type: tuple[dict[str, Stat | Few | None], ...]
    short = {w: short_messages(points[w], w) for w in WORKLOADS}
    for part in (wait, lag, share):
        part.update({w: counted(part[w], short[w]) for w in WORKLOADS})
    least = 100 * published()["fig11"]["lag_share"]
    rows = []
    for w in WORKLOADS:
        what = f"{w.upper()}, share of preemption lag (paper: almost all)"
        rows.append(compare.at_least(what, None, share[w], "%", goal=least))
        rows.append(compare.info(f"{w.upper()}, preemption lag", None, lag[w], "µs"))
        rows.append(compare.info(f"{w.upper()}, queueing", None, wait[w], "µs"))

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(8.8, 4.6) as (figure, panels):
            figure.subplots_adjust(left=0.085, right=0.985, top=0.775, bottom=0.08)
            draw.headline(
                figure,
                "Why the slowest short messages wait, 80 % load (SIGCOMM’18, Figure 11)",
                network_words(options),
                0.085,
            )
            panel = panels[0, 0]
            draw.plain(panel)
            top = 0.5
            for at, w in enumerate(WORKLOADS):
                queueing = tails.known(wait[w])
                if not tails.known(lag[w]) or not queueing:
                    why = "too few messages" if isinstance(lag[w], Few) else "no result"
                    panel.annotate(why, (at, 0), xytext=(0, 4), textcoords="offset points",
                                   ha="center", fontsize=8.8, color=draw.GREY)  # fmt: skip
                    continue
                panel.bar(at, lag[w].mean, 0.6, color=draw.BLUE, yerr=lag[w].half,
                          error_kw={"elinewidth": 0.9, "ecolor": draw.INK, "capsize": 2})  # fmt: skip
                panel.bar(at, queueing.mean, 0.6, bottom=lag[w].mean, color=draw.ORANGE)
                height = lag[w].mean + queueing.mean
                top = max(top, height, lag[w].high)
                if share[w]:
                    panel.annotate(f"{share[w].mean:.0f} % lag", (at, height), xytext=(0, 3),
                                   textcoords="offset points", ha="center", fontsize=8.8)  # fmt: skip
            panel.set_xticks(range(len(WORKLOADS)), [w.upper() for w in WORKLOADS], fontsize=10)
            panel.tick_params(axis="x", length=0)
            panel.set_xlim(-0.5, len(WORKLOADS) - 0.5)
            panel.set_ylim(0, top * 1.15)
            panel.set_ylabel("mean delay, µs")
            from matplotlib.patches import Patch

            draw.legend(
                figure,
                [Patch(color=draw.BLUE), Patch(color=draw.ORANGE)],
                [
                    "preemption lag: the rest of a packet of lower priority",
                    "queueing: packets of the same or higher priority",
                ],
            )
            return finish(figure, stem)

    return Output(
        "Figure 11: causes of delay of short messages near P99",
        ["workload", "short_messages", "wait_us", "wait_ci95", "lag_us", "lag_ci95",
         "lag_share_percent", "share_ci95"],
        [[w, short[w], *cell(wait[w]), *cell(lag[w]), *cell(share[w])] for w in WORKLOADS],
        rows,
        paint,
        {"lag_share_percent": {w: s.mean for w, s in share.items() if isinstance(s, Stat)}},
        [
            "Of the shortest 20 % of messages (W5: of single packets) those with a slowdown between "
            "the 98th and the 99.5th percentile; mean waiting of the packet that completed them. n: all "
            "of these short messages.",
            "The paper's bars have no numbers; its text says that the delay is almost entirely "
            "preemption lag, which stands here as more than half.",
        ],
    )  # fmt: skip


LOADS_14 = (0.5, 0.8, 0.9)


def fig14(lab: Lab, options: Options) -> Output:
    """Which priorities carry how many bytes, W3."""
    points = Points(lab, options, {load: sigcomm("w3", load, options) for load in LOADS_14})
    share = {
        (load, level): stat(
            100 * result["sim"]["priorities"][level]
            for result in points[load]
            if len(result.get("sim", {}).get("priorities", [])) == 8
        )
        for load in LOADS_14
        for level in range(8)
    }
    shades = draw.ramp(len(LOADS_14))

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(8.6, 4.5) as (figure, panels):
            figure.subplots_adjust(left=0.075, right=0.985, top=0.765, bottom=0.14)
            draw.headline(figure, "Use of the priorities, W3 (SIGCOMM’18, Figure 14)",
                          network_words(options), 0.075)  # fmt: skip
            panel = panels[0, 0]
            draw.plain(panel)
            width = 0.8 / len(LOADS_14)
            top = 1.0
            for index, load in enumerate(LOADS_14):
                xs = [n + (index - (len(LOADS_14) - 1) / 2) * width for n in range(8)]
                values = [share[load, n] for n in range(8)]
                heights = [v.mean if v else 0 for v in values]
                top = max(top, *heights)
                panel.bar(xs, heights, width * 0.9, color=shades[index], label=f"{100 * load:.0f} % load",
                          yerr=[(v.half or 0) if v else 0 for v in values],
                          error_kw={"elinewidth": 0.8, "ecolor": draw.INK})  # fmt: skip
            panel.axvline(3.5, color=draw.GREY, linewidth=0.9, linestyle=(0, (1, 2)))
            for x, text in ((1.5, "scheduled"), (5.5, "unscheduled")):
                panel.annotate(text, (x, top * 1.13), ha="center", va="top", color=draw.GREY)
            panel.set_ylim(0, top * 1.15)
            panel.set_xticks(range(8), [f"P{n}" for n in range(8)])
            panel.tick_params(axis="x", length=0)
            panel.set_xlabel("priority (P7 is served first)")
            panel.set_ylabel("% of the hosts' links")
            draw.legend(figure, *panel.get_legend_handles_labels())
            return finish(figure, stem)

    evenness = {}
    for load in LOADS_14:
        used = [v.mean for n in range(4, 8) if (v := share[load, n])]
        if used and min(used) > 0:
            evenness[load] = Stat(max(used) / min(used), None, 1)
    rows = [
        compare.info(
            f"W3 at {100 * load:.0f} %, most to least used unscheduled level",
            published()["fig14"]["evenness"],
            value,
        )
        for load, value in evenness.items()
    ]
    return Output(
        "Figure 14: use of priorities, W3",
        ["load", "priority", "percent_of_links", "ci95"],
        [[load, level, *cell(share[load, level])] for load in LOADS_14 for level in range(8)],
        rows,
        paint,
        {"unscheduled_evenness": {str(k): v.mean for k, v in evenness.items()}},
        ["The paper says that the unscheduled levels are evenly used; it prints no numbers."],
    )


PORTS = {
    "host-down": "switch to host",
    "tor-up": "rack switch up",
    "tor-down": "spine down",
}


def table1(lab: Lab, options: Options) -> Output:
    """Queue lengths at 80 % load."""
    points = _homa(lab, options)
    size = {
        (port, w, kind): points.stat(w, "sim", "queues", port, f"{kind}_bytes", scale=1e-3)
        for port in PORTS
        for w in WORKLOADS
        for kind in ("mean", "max")
    }
    theirs, factor = published()["table1"], published()["goals"]["table1_factor"]
    rows = [
        compare.like(
            f"{w.upper()}, {PORTS[port]}, {kind}",
            theirs[port][w][index],
            size[port, w, kind],
            "KB",
            factor,
        )
        for port in PORTS
        for w in WORKLOADS
        for index, kind in enumerate(("mean", "max"))
    ]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.4, 4.4, 1, 2) as (figure, panels):
            figure.subplots_adjust(left=0.075, right=0.985, top=0.73, bottom=0.09, wspace=0.2)
            draw.headline(figure, "Queue lengths at 80 % load (SIGCOMM’18, Table 1)",
                          network_words(options), 0.075)  # fmt: skip
            for panel, kind in zip(panels[0], ("mean", "max"), strict=True):
                _queue_panel(panel, kind, size)
            panels[0, 0].set_ylabel("KB")
            draw.legend(figure, *panels[0, 0].get_legend_handles_labels())
            return finish(figure, stem)

    worst = [
        max(ours.mean / row.published, row.published / ours.mean)
        for row in rows
        if (ours := tails.known(row.ours)) and ours.mean and row.published
    ]
    return Output(
        "Table 1: queue lengths at 80 % load",
        ["workload", "port", "mean_kb", "mean_ci95", "max_kb", "max_ci95"],
        [
            [w, port, *cell(size[port, w, "mean"]), *cell(size[port, w, "max"])]
            for w in WORKLOADS
            for port in PORTS
        ],
        rows,
        paint,
        {"worst_ratio": max(worst) if worst else None},
        [
            "KB are 1000 bytes. The largest queue grows with the time that is watched; the paper "
            "watched 1.2 to 3.8 simulated seconds.",
            "Two-sided: a queue that is much shorter than the published one counts as a difference, too.",
        ],
    )


def _queue_panel(panel, kind: str, size: dict) -> None:  # noqa: ANN001
    colors = dict(zip(PORTS, (draw.BLUE, draw.ORANGE, draw.GREEN), strict=True))
    theirs = published()["table1"]
    draw.plain(panel)
    width = 0.8 / len(PORTS)
    for index, port in enumerate(PORTS):
        values = [size[port, w, kind] for w in WORKLOADS]
        panel.bar(
            [n + (index - 1) * width for n in range(len(WORKLOADS))],
            [v.mean if v else 0 for v in values],
            width * 0.9,
            color=colors[port],
            label=PORTS[port],
            yerr=[(v.half or 0) if v else 0 for v in values],
            error_kw={"elinewidth": 0.8, "ecolor": draw.INK},
        )
        for at, w in enumerate(WORKLOADS):
            panel.plot(
                [at + (index - 1.5) * width, at + (index - 0.5) * width],
                [theirs[port][w][0 if kind == "mean" else 1]] * 2,
                color=draw.PAPER,
                linewidth=2,
                label="published" if at == index == 0 else None,
            )
    panel.set_xticks(range(len(WORKLOADS)), [w.upper() for w in WORKLOADS], fontsize=10)
    panel.tick_params(axis="x", length=0)
    panel.set_ylim(bottom=0)
    title = "mean over time and ports" if kind == "mean" else "largest, any port"
    panel.set_title(title, loc="left", fontsize=9.5)


FIGURES = [
    Figure("fig11", "causes of the delay of short messages near P99", fig11),
    Figure("fig14", "use of the eight priorities, W3, several loads", fig14),
    Figure("table1", "queue lengths at 80 % load", table1),
]
