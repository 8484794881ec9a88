# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""ATC'21 Figures 3, 4 and 7 with the software of hosts: each has 20 cores, on which it queues.

Homa has the costs that were counted in homa.ko, TCP and DCTCP those of the kernel's TCP (docs/
simulator.md, "A host's cores"). So microseconds can be compared, where atc3 and atc4 compare ratios.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lab.sim import compare, draw
from lab.sim.figures.atc import (
    PROTOCOLS,
    RULE,
    SLOW,
    TWO_SIDED,
    WORKLOADS,
    Look,
    atc,
    by_size,
    distribution,
    ratio_rows,
    short,
    values,
)
from lab.sim.figures.base import Figure, Options, Output, Points, finish
from lab.sim.figures.cores import CORES, best, stages
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.spec import Spec

OFFLOAD = "rss+lso"
# "Software overheads increase by 2-3x when load balancing is used" (Section 6): the middle of it, as
# a clock of 2400 / 2.5 MHz. A number of the paper's, measured apart from Figures 3 and 4.
SPREAD = {"cost": ["mips=960"]}
# Whose stages Figure 7 shows here; the paper's shows Homa's alone.
STAGED = ("homa", "tcp")


def _points(lab: Lab, options: Options) -> Points:
    """The runs of Figures 3 and 4; (SLOW, protocol, workload) has slower stages."""
    specs: dict[object, Spec] = {}
    for w in WORKLOADS:
        for p in options.chosen(PROTOCOLS):
            specs[p, w] = atc(p, w, options, offload=OFFLOAD, **CORES)
            specs[SLOW, p, w] = atc(p, w, options, offload=OFFLOAD, **CORES, **SPREAD)
    return Points(lab, options, specs)


def _rows(points: Points) -> list[compare.Row]:
    theirs, factor = published()["atc"], published()["cores"]["factor"]
    rows = ratio_rows(points)
    for p in PROTOCOLS:
        for w in WORKLOADS:
            for index, percent in enumerate((50, 99)):
                what = f"{draw.TITLES[p]} {w.upper()}, short messages, P{percent}"
                ours = short(points[p, w], percent)
                rows.append(compare.like(what, theirs[p][w][index], ours, "µs", factor))
    for p in PROTOCOLS:
        for w in WORKLOADS:
            for index, percent in enumerate((50, 99)):
                what = f"{draw.TITLES[p]} {w.upper()}, each stage 2.5 times slower, P{percent}"
                ours = short(points[SLOW, p, w], percent)
                rows.append(compare.info(what, theirs[p][w][index], ours, "µs", 1))
    for p in PROTOCOLS:
        for w in WORKLOADS:
            used = points.stat((p, w), "sim", "software", "cores_used", "total")
            rows.append(compare.info(f"{draw.TITLES[p]} {w.upper()}, cores used", None, used))
    return rows


NOTES = [
    "Load: the paper's rates of message bytes. Short: the shortest tenth of the messages. Goals of "
    "ratios are the paper's text (Section 5.2), those of microseconds the notes' numbers, to within a "
    "factor of 1.25 to either side. " + TWO_SIDED,
    "Costs are instructions, counted, at 2.4 GHz and one instruction a cycle; nothing was fitted. The "
    "paper saw each stage 2 to 3 times slower once work is spread over cores, and its cores are half of "
    "a core each: the rows with slower stages show what that would make of ours.",
    "What no cost covers: the thread scheduler, which the paper blames for most of its tail beside hot "
    "spots, and C-states.",
    "Slowdown is to Homa's packets and software alone between the same two hosts.",
]


def _look(what: str, head: str, points: Points, options: Options) -> Look:
    return Look(
        f"ATC'21 {what}, simulated with the software of hosts",
        head,
        f"40 hosts with 20 cores, 25 Gbit/s, MTU 3000; {options.words()}",
        _rows(points),
        values(points),
        list(NOTES),
    )


def atc3_cores(lab: Lab, options: Options) -> Output:
    """Slowdown by message size, P50 and P99."""
    points = _points(lab, options)
    head = "Slowdown of RPCs by message size, software queues (ATC’21, Figure 3, simulated)"
    return by_size(points, _look("Figure 3: slowdown of RPCs", head, points, options))


def atc4_cores(lab: Lab, options: Options) -> Output:
    """How long short messages take: the whole distribution."""
    points = _points(lab, options)
    head = "Round trips of the shortest tenth, software queues (ATC’21, Figure 4, simulated)"
    look = _look("Figure 4: latency of short messages", head, points, options)
    look = replace(look, under=f"{look.under}; dotted: each stage 2.5 times slower")
    return distribution(points, look)


def _sum(parts: list[tuple[str, float]]) -> float:
    return sum(ns for _, ns in parts)


def _stage_rows(found: dict[str, tuple[list, list]]) -> list[compare.Row]:
    theirs = published()["cores"]
    factor, rows = theirs["factor"], []
    for p, (send, receive) in found.items():
        sent, received = (compare.exactly(_sum(part) / 1e3) for part in (send, receive))
        both = compare.exactly(2 * (_sum(send) + _sum(receive)) / 1e3)
        parts = (
            ("sending", theirs["send_us"], sent),
            ("receiving, the thread polls", theirs["receive_us"], received),
            ("software of a round trip", theirs["software_us"], both),
        )
        for what, paper, ours in parts:
            name = f"{draw.TITLES[p]}, 100 B, {what}"
            if p == "homa":
                rows.append(compare.like(name, paper, ours, "µs", factor))
            else:
                rows.append(compare.info(name, None, ours, "µs"))
    return rows


def atc7(lab: Lab, options: Options) -> Output:
    """Where the time of a short message goes, stage by stage."""
    points = Points(lab, options, {p: best(p, options) for p in STAGED})
    found = {p: stages(points[p][0]) for p in STAGED if points[p]}
    records = [
        [p, way, name, f"{ns:.6g}"]
        for p, both in found.items()
        for way, part in zip(("send", "receive"), both, strict=True)
        for name, ns in part
    ]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(10.6, 4.4) as (figure, panels):
            figure.subplots_adjust(left=0.17, right=0.985, top=0.8, bottom=0.13)
            draw.headline(
                figure,
                "A short message’s way through the software of its hosts (ATC’21, Figure 7, simulated)",
                f"100 bytes, nothing else to do, the receiving thread polls; {options.words()}",
                0.02,
            )
            panel = panels[0, 0]
            bars = [
                (f"{draw.TITLES[p]}, {way}", part)
                for p, both in found.items()
                for way, part in zip(("sending", "receiving"), both, strict=True)
            ]
            shades = draw.ramp(7)[1:6]  # no stage is too pale or too dark for its text
            for y, (_, part) in enumerate(bars):
                at = 0.0
                for index, (name, ns) in enumerate(part):
                    shade = shades[index]
                    panel.barh(y, ns, 0.62, at, color=shade, edgecolor="white")
                    if ns > 240:
                        panel.text(at + ns / 2, y, f"{name}\n{ns:,.0f}", ha="center", va="center",
                                   fontsize=7.5, color="white" if index > 1 else draw.INK)  # fmt: skip
                    at += ns
            draw.plain(panel, "x")
            panel.set_yticks(range(len(bars)), [name for name, _ in bars])
            panel.invert_yaxis()
            panel.set_xlabel("ns")
            return finish(figure, stem)

    return Output(
        "ATC'21 Figure 7, simulated: where the time of a short message goes",
        ["protocol", "way", "stage", "ns"],
        records,
        _stage_rows(found),
        paint,
        {},
        [
            "The paper's picture has its stages' times; its text has the sums, which stand here.",
            "Costs are instructions, counted, at 2.4 GHz and one instruction a cycle, and times of the "
            "performance notes for interrupts; nothing was fitted. The network between takes 5.6 µs of a "
            "round trip in the paper and here: that number is the paper's and goes in.",
            "Threads of TCP sleep when they wait; how long waking takes stands in Table 2's latency.",
        ],
    )


FIGURES = [
    Figure(
        "atc3-cores", "slowdown of RPCs by message size, software of hosts queues", atc3_cores, RULE
    ),
    Figure("atc4-cores", "latency of short messages, software of hosts queues", atc4_cores, RULE),
    Figure("atc7", "where the time of a short message goes", atc7),
]
