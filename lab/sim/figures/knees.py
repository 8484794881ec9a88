# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The knees behind Figure 12: growth of the backlog above the oracle's, by offered load."""

from __future__ import annotations

from pathlib import Path

from lab.sim import draw, sustain
from lab.sim.figures.base import WORKLOADS, Options, finish, network_words
from lab.sim.knee import Knee, Plan

_LOWEST, _HIGHEST = -5.0, 30.0  # % of what is offered; beyond, points stand at the edge


def paint(
    stem: Path, options: Options, protocols: list[tuple[str, str, str]], knees: dict[object, Knee]
) -> list[Path]:
    """A panel per workload; `protocols` as (key, title, colour's protocol)."""
    with draw.canvas(11.2, 8.6, 3, 2) as (figure, panels):
        figure.subplots_adjust(left=0.07, right=0.985, top=0.87, bottom=0.07, hspace=0.42)
        draw.headline(
            figure,
            "Growth of the backlog above the oracle’s, by offered load (behind Figure 12)",
            network_words(options, options.limit_hosts())
            + f"; below {100 * sustain.LIMIT:g} % in both windows, of which the worse is shown: sustained",
            0.07,
        )
        for panel, w in zip(panels.flat, WORKLOADS, strict=False):
            _panel(panel, w, protocols, knees, options.limit_plan())
        panels.flat[-1].set_axis_off()
        for panel in (panels[2, 0], panels[1, 1]):
            panel.set_xlabel("offered, % of the hosts’ links")
        drawn = [panel.get_legend_handles_labels() for panel in panels.flat]
        handles, labels = max(drawn, key=lambda found: len(found[1]))
        draw.legend(figure, handles, labels, columns=len(labels) or 1)
        return finish(figure, stem.with_name(stem.name + "-knees"))


def _panel(panel, workload: str, protocols: list, knees: dict, plan: Plan) -> None:  # noqa: ANN001
    draw.plain(panel, "both")
    for key, title, base in protocols:
        knee = knees.get((key, workload))
        if not knee:
            continue
        shown = [
            (100 * load, verdict)
            for load, verdict in sorted(knee.tried.items())
            if verdict.shown is not None
        ]
        if not shown:
            continue
        color = draw.COLORS[base]
        ys = [min(_HIGHEST, 100 * v.shown.mean) for _, v in shown]
        errors = [100 * (v.shown.half or 0) for _, v in shown]
        panel.errorbar(
            [x for x, _ in shown], ys, yerr=errors, color=color, linewidth=1.5,
            elinewidth=0.8, capsize=2, label=title, linestyle="-" if key == base else "--",
        )  # fmt: skip
        for (x, verdict), y in zip(shown, ys, strict=True):
            panel.plot(
                x, y, draw.MARKERS.get(base) or "o", color=color, markersize=5.5, zorder=4,
                markerfacecolor=color if verdict.sustained else "white",
            )  # fmt: skip
    if not panel.has_data():
        panel.annotate("not measured yet", (0.5, 0.5), xycoords="axes fraction", ha="center",
                       va="center", fontsize=9.5, color=draw.GREY)  # fmt: skip
    panel.set_xlim(100 * plan.least - 2, 100 * plan.most + 2)
    panel.axhline(100 * sustain.LIMIT, color=draw.PAPER, linewidth=0.9, linestyle=(0, (1, 2)))
    panel.set_ylim(_LOWEST, _HIGHEST * 1.05)
    panel.set_ylabel("% of what is offered")
    panel.set_title(workload.upper(), loc="left", fontsize=10.5, fontweight="bold", pad=3)
