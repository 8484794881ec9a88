# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""ATC'21 Table 2: latency, throughput and RPC rate at best, with the software of hosts; and
Table 3, the workloads' means.

Clients are closed loops, as the paper's. Of the numbers of RPCs that a client keeps under way the
best one counts, as there ("each number represents the best average").
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab.sim import compare, draw, tails
from lab.sim.figures.atc import PROTOCOLS, WORKLOADS, atc
from lab.sim.figures.atc_software import OFFLOAD, SPREAD
from lab.sim.figures.base import Figure, Options, Output, Points, cell, finish
from lab.sim.figures.cores import CORES, best
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.spec import Spec, merge
from lab.sim.stats import Stat

# How costs are changed; of those that are not, rows are judged.
HOW = {
    "counted": "",
    "copies": "copies at 38 Gbit/s",
    "slow": "each stage 2.5 times slower",
    "carried": "no packet only acknowledges",
}
NODES = 10  # of the rows with many: one to nine, or nine to one


@dataclass(frozen=True)
class Line:
    """A line of the table but the first.

    `servers`: of `hosts`. `flights`: numbers of RPCs that a client keeps under way, to choose from.
    `place`: of the number in a result, times `scale`. `milliseconds`: measured, quick and full.
    """

    name: str
    title: str
    unit: str
    hosts: int
    servers: int
    size: int
    flights: tuple[int, ...]
    place: tuple[str, str]
    scale: float
    milliseconds: tuple[float, float]


_BULK, _SHORT = 500000, 100
# Copies of 2 bytes an instruction, 38 Gbit/s: the performance notes, item 36, saw 36 to 54 on these
# processors, where instructions alone would give 154.
COPIES = {"cost": ["copy=2"]}
# The model of TCP sends ACKs as packets of their own, one for each RPC here. The kernel's responses and
# next requests carry them, so the RPC whose instructions were counted had no such packet.
CARRIED = {"set": {"ack-every": 64, "ack-delay": 500000}}
LINES = (
    Line("stream_gbps", "500 KB, one at a time", "Gbit/s", 2, 1, _BULK, (1,),
         ("throughput", "goodput_gbps"), 1, (30, 300)),
    Line("client_gbps", "one client, 500 KB", "Gbit/s", NODES, NODES - 1, _BULK, (9, 27),
         ("throughput", "request_gbps"), 1, (40, 200)),
    Line("server_gbps", "one server, 500 KB", "Gbit/s", NODES, 1, _BULK, (1, 3),
         ("throughput", "request_gbps"), 1, (40, 200)),
    Line("client_mops", "one client, 100 B", "million/s", NODES, NODES - 1, _SHORT, (45, 90, 180, 360),
         ("throughput", "rps"), 1e-6, (2, 20)),
    Line("server_mops", "one server, 100 B", "million/s", NODES, 1, _SHORT, (5, 10, 20, 40),
         ("throughput", "rps"), 1e-6, (2, 20)),
)  # fmt: skip


def _spec(line: Line, protocol: str, flight: int, options: Options, **more: object) -> Spec:
    measure = line.milliseconds[0 if options.quick else 1] * options.scale
    own = {
        "hosts": line.hosts,
        "workload": f"fixed:{line.size}",
        "closed": flight,
        "servers": line.servers,
        # TCP's windows grow with each use of a connection, of which there are many.
        "warmup": f"{measure:.6g}ms",
        "measure": f"{measure:.6g}ms",
        "drain": "100ms",
    }
    return merge(atc(protocol, "w4", options, offload=OFFLOAD, **CORES), own, more)


def _is_shown(how: str, line: Line, protocol: str) -> bool:
    """Whether the line may change by it."""
    if how == "copies":
        return line.size == _BULK
    return how != "carried" or (line.size == _SHORT and protocol != "homa")


def _best_of(points: Points, line: Line, protocol: str, how: str) -> Stat | None:
    """The flight that brings most."""
    found = [
        points.stat((how, line.name, protocol, n), *line.place, scale=line.scale)
        for n in line.flights
    ]
    return max((f for f in found if f), key=lambda stat: stat.mean, default=None)


def _latency(points: Points, protocol: str):  # noqa: ANN202
    return tails.tail(tails.at(points["best", protocol], "latency_ns"), 50, 1e-3)


def _ratio(points: Points, line: Line, how: str) -> Stat | None:
    homa, tcp = (_best_of(points, line, p, h) for p, h in (("homa", "counted"), ("tcp", how)))
    return compare.exactly(homa.mean / tcp.mean) if homa and tcp else None


def _ratio_rows(points: Points, chosen: list[str]) -> list[compare.Row]:
    """Homa over TCP: a clock that is wrong for both cancels out."""
    if not {"homa", "tcp"} <= set(chosen):
        return []
    theirs, factor = published()["table2"], published()["cores"]["factor"]
    rows = []
    for line in LINES:
        what = f"Homa to TCP, {line.title}"
        paper = theirs[line.name][0] / theirs[line.name][1]
        rows.append(compare.like(what, paper, _ratio(points, line, "counted"), "", factor))
        if _is_shown("carried", line, "tcp"):
            ours = _ratio(points, line, "carried")
            rows.append(compare.info(f"{what}, {HOW['carried']}", paper, ours, ""))
    return rows


NOTES = [
    "Lines of throughput: the paper says that only message bytes count. One client at a time has "
    "requests and responses one after the other, so both count, or its 20 Gbit/s of TCP were not "
    "possible; of the others one direction counts.",
    "Of several numbers of RPCs under way the best one counts. Rates are of all hosts' cores at one "
    "instruction a cycle; the paper's 20 cores are 10 with two threads each, and its stages are 2 to 3 "
    "times slower once work is spread over them: the rows with slower stages have that.",
    "Windows were changed after a result: with 3 ms of warm-up and 15 ms measured TCP had 18.3 Gbit/s with "
    "one client and 17.8 with one server (missed), because its windows still grew. Ratios of Homa to TCP "
    "became rows after the rates had been seen.",
    "Latency: one core a host, as in the paper. Threads of TCP sleep when they wait, Homa's poll. The "
    "paper's TCP also calls epoll, which it says takes 1 µs; ours does not.",
    "Homa's message is copied before it is sent and after it has come, by instructions at 154 Gbit/s; "
    "the performance notes (item 36) saw 36 to 54 on the paper's processors: the rows with copies at 38.",
    "Here each RPC of TCP brings a packet that only acknowledges, which costs as others do; the kernel's "
    "next data carry that, and the RPC that was counted had none: the rows without such packets. So a part "
    "of what Homa's rate is to TCP's comes from the model.",
]


def _specs(options: Options) -> dict[object, Spec]:
    specs: dict[object, Spec] = {}
    for p in options.chosen(PROTOCOLS):
        specs["best", p] = best(p, options)
        for line in LINES:
            for n in line.flights:
                specs["counted", line.name, p, n] = _spec(line, p, n, options)
                specs["slow", line.name, p, n] = _spec(line, p, n, options, **SPREAD)
                for how, change in (("copies", COPIES), ("carried", CARRIED)):
                    if _is_shown(how, line, p):
                        specs[how, line.name, p, n] = _spec(line, p, n, options, **change)
    return specs


def atc_table2(lab: Lab, options: Options) -> Output:
    """Latency, throughput and rate at best."""
    points = Points(lab, options, _specs(options))
    theirs, factor = published()["table2"], published()["cores"]["factor"]
    order = ("homa", "tcp", "dctcp")  # the table's columns
    chosen = [p for p in order if p in options.chosen(PROTOCOLS)]
    rows, records = [], []
    for p in chosen:
        ours = _latency(points, p)
        what = f"{draw.TITLES[p]}, 100 B, round trip, P50"
        rows.append(compare.like(what, theirs["latency_us"][order.index(p)], ours, "µs", factor))
        records.append(["latency_us", p, "counted", *cell(ours)])
    rows += _ratio_rows(points, chosen)
    for how, words in HOW.items():
        for line in LINES:
            for p in (p for p in chosen if _is_shown(how, line, p)):
                ours = _best_of(points, line, p, how)
                paper = theirs[line.name][order.index(p)]
                what = f"{draw.TITLES[p]}, {line.title}"
                if not words:
                    rows.append(compare.like(what, paper, ours, line.unit, factor))
                else:
                    rows.append(compare.info(f"{what}, {words}", paper, ours, line.unit))
                records.append([line.name, p, how, *cell(ours)])

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(10.6, 4.8, 1, len(LINES)) as (figure, panels):
            figure.subplots_adjust(left=0.05, right=0.985, top=0.76, bottom=0.12, wspace=0.34)
            draw.headline(
                figure,
                "Throughput and RPC rate at best (ATC’21, Table 2, simulated)",
                f"bars: ours, each stage as counted and 2.5 times slower; diamonds: the paper's; {options.words()}",
                0.05,
            )
            for panel, line in zip(panels[0], LINES, strict=True):
                for x, p in enumerate(chosen):
                    for shift, how, alpha in ((-0.19, "counted", 1.0), (0.19, "slow", 0.45)):
                        ours = _best_of(points, line, p, how)
                        if ours:
                            panel.bar(x + shift, ours.mean, 0.36, color=draw.COLORS[p], alpha=alpha)
                    panel.plot(
                        x, theirs[line.name][order.index(p)], "D", color=draw.INK, markersize=6
                    )
                draw.plain(panel)
                panel.set_xticks(range(len(chosen)), [draw.TITLES[p] for p in chosen])
                panel.set_title(f"{line.title},\n{line.unit}", loc="left", fontsize=9, pad=3)
            return finish(figure, stem)

    return Output(
        "ATC'21 Table 2, simulated: latency, throughput and RPC rate at best",
        ["line", "protocol", "stages", "value", "ci95"],
        records,
        rows,
        paint,
        {},
        list(NOTES),
    )


def atc_table3(lab: Lab, options: Options) -> Output:
    """The mean length of each workload's messages, of those that a run draws from."""
    short = {"measure": "1ms", "warmup": "0ms", "drain": "0ms"}
    specs: dict[object, Spec] = {
        w: merge(atc("homa", w, options), short, {"hosts": 4}) for w in WORKLOADS
    }
    points = Points(lab, options, specs)
    theirs = published()["table3"]["mean"]
    means = {w: points.stat(w, "config", "mean_bytes") for w in WORKLOADS}
    rows = [
        compare.like(f"{w.upper()}, mean message", theirs[w], means[w], "bytes", 1.01)
        for w in WORKLOADS
    ]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(7.6, 4.2) as (figure, panels):
            figure.subplots_adjust(left=0.1, right=0.985, top=0.8, bottom=0.1)
            draw.headline(
                figure,
                "Mean message of the workloads, cut at 1 MB (ATC’21, Table 3)",
                "bars: the simulator's distributions; diamonds: the paper's",
                0.1,
            )
            panel = panels[0, 0]
            for x, w in enumerate(WORKLOADS):
                panel.bar(x, means[w].mean if means[w] else 0, 0.5, color=draw.COLORS["homa"])
                panel.plot(x, theirs[w], "D", color=draw.INK, markersize=6)
            panel.set_yscale("log")
            draw.plain(panel)
            panel.set_xticks(range(len(WORKLOADS)), [w.upper() for w in WORKLOADS])
            panel.set_ylabel("bytes")
            return finish(figure, stem)

    return Output(
        "ATC'21 Table 3: the workloads",
        ["workload", "published_mean_bytes", "mean_bytes", "ci95"],
        [[w, theirs[w], *cell(means[w])] for w in WORKLOADS],
        rows,
        paint,
        {},
        ["Calculated from the distributions, not drawn; to within 1 % counts as the same."],
    )


FIGURES = [
    Figure("atc-table3", "mean message of each workload", atc_table3),
    Figure("atc-table2", "latency, throughput and RPC rate at best", atc_table2),
]
