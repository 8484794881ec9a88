# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TAS, EuroSys 2019, Figure 7: what random losses leave of a link's throughput.

In both hosts runs the TCP engine; processors are no limit. 100 connections from one host to the other always
have something to send, and each direction of the path loses packets, so ACKs, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from lab.sim import compare, draw
from lab.sim.arrivals import recorded
from lab.sim.figures.base import Figure, Options, Output, cell, finish
from lab.sim.figures.tas import SLOW_LINKS, Series
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.spec import Spec, merge
from lab.sim.stats import Stat, stat
from lab.sim.sweep import pick

CONNECTIONS = 100
# No connection comes to its end within the time that is measured.
ENDLESS = 1_000_000_000


def _series(key: str, title: str, color: str, **settings: int) -> Series:
    return Series(key, title, {"protocol": "tas", "set": settings}, color)


SERIES = (
    _series("rate", "DCTCP by rate, SACK", draw.ORANGE, congestion=3),
    _series("rate-1", "DCTCP by rate, one interval", draw.YELLOW, congestion=3, sack=0, intervals=1),
    _series("newreno", "NewReno, SACK", draw.BLUE, congestion=0),
    _series("newreno-1", "NewReno, one interval", draw.SKY, congestion=0, sack=0, intervals=1),
    _series("timely", "TIMELY, SACK", draw.GREEN, congestion=4),
)  # fmt: skip


def _arrivals(seed: int) -> Iterator[str]:
    """Connections from host 1 to host 0 that begin within a millisecond."""
    rng = random.Random(seed)
    for at in sorted(rng.randrange(1_000_000) for _ in range(CONNECTIONS)):
        yield f"{at},1,0,{ENDLESS}"


def _per_link(percent: float) -> float:
    """Loss of each of the two links of a path that loses so much."""
    return 1 - (1 - percent / 100) ** 0.5


def loss(lab: Lab, options: Options) -> Output:
    """Throughput kept, by loss."""
    percents = (0.0, 0.1, 1.0, 5.0) if options.quick else (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    seconds = (0.2 if options.quick else 1.0) * options.scale
    base: Spec = merge(SLOW_LINKS, {
        "topology": "one-switch", "hosts": 2, "warmup": "50ms", "measure": f"{seconds * 1000:g}ms", "drain": "0ms",
    })  # fmt: skip
    seeds = options.seed_list()
    files = {seed: recorded(lab.store.folder, f"tas-7-{seed}", _arrivals(seed)) for seed in seeds}
    points = [(s, percent) for s in SERIES for percent in percents]
    results = iter(lab.results([
        merge(base, s.spec, {"loss": _per_link(percent), "seed": seed, "arrivals": files[seed]})
        for s, percent in points for seed in seeds
    ]))  # fmt: skip
    found = {(s.key, percent): [_goodput(next(results)) for _ in seeds] for s, percent in points}
    kept = {key: _kept(values, found[key[0], 0.0]) for key, values in found.items()}
    whole = published()["tas7"]["kept"]
    rows = [
        compare.at_least(f"throughput kept at {percent} % loss, {s.title}", goal, kept[s.key, float(percent)])
        for percent, goal in whole.items() for s in SERIES if s.key in ("rate", "newreno")
    ]  # fmt: skip
    rows += [
        compare.info(f"the same at {percent} %, {s.title}", goal, kept[s.key, float(percent)], digits=3)
        for percent, goal in whole.items() for s in SERIES if s.key not in ("rate", "newreno")
    ]  # fmt: skip

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.0, 3.9) as (figure, panels):
            panel = panels[0][0]
            figure.subplots_adjust(left=0.08, right=0.98, top=0.72, bottom=0.14)
            draw.headline(
                figure,
                "TAS, Figure 7: throughput that losses leave, one link of 10 Gbit/s",
                f"{CONNECTIONS} connections, RTT 100 µs, losses in both directions; {options.words()}",
                0.03,
            )
            for s in SERIES:
                line = [(p, v.mean, v.half or 0) for p in percents if p and (v := kept[s.key, p])]
                if line:
                    x, y, half = zip(*line, strict=True)
                    panel.errorbar(x, y, yerr=half, color=s.color, marker="o", markersize=4.2, linewidth=1.8,
                                   label=s.title)  # fmt: skip
            panel.plot([float(p) for p in whole], list(whole.values()), color=draw.INK, marker="x", linestyle="none",
                       label="published, TAS", zorder=5)  # fmt: skip
            panel.set_xscale("log")
            panel.set_xticks([p for p in percents if p], [f"{p:g}" for p in percents if p])
            panel.minorticks_off()
            panel.set_ylim(bottom=0)
            panel.set_xlabel("packets lost, %")
            panel.set_ylabel("throughput to that without loss")
            draw.plain(panel)
            draw.legend(figure, *panel.get_legend_handles_labels())
            return finish(figure, stem)

    return Output(
        "TAS, Figure 7: throughput that losses leave",
        ["control", "loss_percent", "goodput_gbps", "ci95", "kept", "kept_ci95"],
        [
            [
                s.title,
                f"{percent:g}",
                *cell(stat(found[s.key, percent])),
                *cell(kept[s.key, percent]),
            ]
            for s, percent in points
        ],  # fmt: skip
        rows,
        paint,
        notes=[
            "What differs: the paper's hosts have processors, which work more when packets are lost; here only the "
            "protocol counts. On real packets of this machine: ./homa bench tas loss.",
        ],
    )


def _goodput(result: dict | None) -> float | None:
    """Gbit/s of payload at the receiver's link in the time that is measured."""
    share = pick(result, ("sim", "utilisation", "application")) if result else None
    # It is the mean of two hosts, of which one receives.
    return None if share is None else share * 2 * 10


def _kept(values: list[float | None], without: list[float | None]) -> Stat | None:
    """Of each seed to the same without loss."""
    return stat(v / w for v, w in zip(values, without, strict=True) if v is not None and w)


FIGURES = [Figure("tas-7", "TAS: throughput that losses leave", loss)]
