# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What hosts' software costs: ATC'21 Figures 4 and 7 and Table 4, and SNIA'24's offloads.

Hosts have 20 cores, and costs are instructions counted in homa.ko (docs/simulator.md, "A host's
cores"). The card's own time is ATC'21's 5.6 µs of a round trip that are not software (Section 6),
less wires and switch: 1.205 µs at each end of each way. None of it was chosen by these figures.
"""

from __future__ import annotations

from pathlib import Path

from lab.sim import compare, draw, tails
from lab.sim.figures.atc import atc, short
from lab.sim.figures.base import Figure, Options, Output, Points, cell, finish
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.spec import Spec, merge
from lab.sim.stats import Stat

CARD = {"send-delay": "1205ns", "receive-delay": "1205ns"}
CORES = {"cores": 20, **CARD}
WORKLOADS = ("w2", "w3", "w4", "w5")
PARTS = ("send", "recv", "reply", "napi", "softirq", "pacer", "wake")
# Their colours in the figure: neighbours in a bar have to be told apart.
PART_COLORS = dict(
    zip(
        PARTS,
        (draw.BLUE, draw.SKY, draw.GREEN, draw.ORANGE, draw.RED, draw.PURPLE, draw.GREY),
        strict=True,
    )
)
OFFLOADS = {
    "none": "no offload",
    "rss": "RSS",
    "lso": "LSO",
    "lro": "LRO",
    "all": "all",
}
# The clock is an assumption, so both ends are measured at a slower one, too: a nanosecond for each
# instruction, which is what homa.ko took in a guest (docs/kernel-performance.md).
SLOW = {"none": "none-slow", "all": "all-slow"}
# The tenths of the messages that the rows name; the longest are much longer than a packet.
SHORT, LONG = 1, 10


def best(protocol: str, options: Options) -> Spec:
    """Round trips of 100 bytes one at a time: one core a host. Homa's threads poll, TCP's sleep."""
    measure = 400 if options.quick else 2000
    times = {"warmup": "1ms", "measure": f"{measure * options.scale:.6g}ms", "drain": "5ms"}
    base = atc(protocol, "w4", options, 1.0, offload="rss+lso", **CARD)
    own: Spec = {"hosts": 2, "workload": "fixed:100", "load": 0.0002, "cores": 1}
    if protocol == "homa":
        own["cost"] = ["poll=1000000000"]
    return merge(base, own, times)


_SEND = ("send-call", "unit-out")
_RECEIVE = ("interrupt", "napi-pass", "napi-packet", "softirq-packet", "recv-call")
_TIMES = ("interrupt", "handoff", "sleep")  # in ns, where others are instructions


def stages(result: dict) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """What a short message costs its sender, and a receiver that polls: (stage, ns)."""
    costs = result["sim"]["software"]["costs"]

    def part(names: tuple[str, ...]) -> list[tuple[str, float]]:
        return [(n, costs[n] if n in _TIMES else costs[n] / costs["mips"] * 1e3) for n in names]

    return part(_SEND), part(_RECEIVE)


def _stage_rows(points: Points) -> list[compare.Row]:
    """Figure 7: what a short message costs at each end."""
    if not points["best"]:
        return []
    theirs = published()["cores"]
    return [
        compare.like(what, theirs[name], compare.exactly(_total(part)), "µs", theirs["factor"])
        for what, name, part in zip(
            ("sending 100 B, software", "receiving 100 B, software"),
            ("send_us", "receive_us"),
            stages(points["best"][0]),
            strict=True,
        )
    ]


def _total(part: list[tuple[str, float]]) -> float:
    return sum(ns for _, ns in part) / 1e3


def _use(points: Points, workload: str, part: str) -> Stat | None:
    return points.stat(workload, "sim", "software", "cores_used", part)


def _rows(points: Points) -> list[compare.Row]:
    theirs = published()["cores"]
    factor, table = theirs["factor"], published()["table4"]["cores"]
    least = tails.tail(tails.at(points["best"], "latency_ns"), 50, 1e-3)
    rows = [
        compare.like("best case, 100 B, round trip, P50", theirs["best_us"], least, "µs", factor),
        compare.like(
            "W4, shortest tenth, P50", theirs["w4_us"], short(points["w4"], 50), "µs", factor
        ),
        *_stage_rows(points),
    ]
    for w in WORKLOADS:
        ours = _use(points, w, "total")
        rows.append(compare.like(f"{w.upper()}, cores used", table[w][0], ours, "", factor))
    for w in WORKLOADS:
        for part, value in theirs["parts"][w].items():
            rows.append(compare.info(f"{w.upper()}, cores, {part}", value, _use(points, w, part)))
    return rows


NOTES = [
    "Costs are instructions of homa.ko, counted, at 2.4 GHz and one instruction a cycle; nothing was "
    "fitted. The 5.6 µs of the best case that are not software are the paper's own and go in.",
    "W4's median: the paper saw every stage 2 to 3 times slower once work is spread over cores, and "
    "does not know why; no count of instructions has that.",
    "Sending: ours is sendmsg() with its control structures, 2.1 k instructions an RPC; the paper's was "
    "an ioctl.",
    "W2 to W5's cores: ours are instructions without cache misses. Their pacer polls, ours does not "
    "exist, and the packets that grants release are under 'pacer' here, in the other parts there.",
    "Wake-ups are in none of the paper's parts. Polling is not counted, as in the paper's totals.",
    "All of Table 2 is in atc-table2.",
]


def atc_cores(lab: Lab, options: Options) -> Output:
    """Where the time of Homa's software goes."""
    specs: dict[object, Spec] = {
        w: atc("homa", w, options, 1.0, offload="rss+lso", **CORES) for w in WORKLOADS
    }
    specs["best"] = best("homa", options)
    points = Points(lab, options, specs)
    theirs = published()["cores"]["parts"]
    records = [
        [w, part, theirs[w].get(part, ""), *cell(_use(points, w, part))]
        for w in WORKLOADS
        for part in (*PARTS, "total")
    ]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.8, 5.0) as (figure, panels):
            figure.subplots_adjust(left=0.075, right=0.86, top=0.84, bottom=0.12)
            draw.headline(
                figure,
                "Cores used by the parts of Homa’s software (ATC’21, Table 4, simulated)",
                f"left bars: the paper's; right bars: ours; {options.words()}",
                0.075,
            )
            panel = panels[0, 0]
            for x, w in enumerate(WORKLOADS):
                ours = {p: v.mean for p in PARTS if (v := _use(points, w, p))}
                for shift, values in ((-0.2, theirs[w]), (0.2, ours)):
                    floor = 0.0
                    for part, shade in PART_COLORS.items():
                        height = values.get(part, 0)
                        label = part if x == 0 and shift > 0 else None
                        panel.bar(x + shift, height, 0.36, floor, color=shade, label=label)
                        floor += height
            draw.plain(panel)
            panel.set_xticks(range(len(WORKLOADS)), [w.upper() for w in WORKLOADS])
            panel.set_ylabel("cores of each host")
            handles, labels = panel.get_legend_handles_labels()
            panel.legend(
                handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5),
                frameon=False,
            )  # fmt: skip
            return finish(figure, stem)

    return Output(
        "ATC'21 Figures 4 and 7 and Table 4, simulated: what software costs",
        ["workload", "part", "published", "cores", "ci95"],
        records,
        _rows(points),
        paint,
        {},
        list(NOTES),
    )


def _offload_spec(offload: str, options: Options, **more: object) -> Spec:
    measure = (120 if options.quick else 600) * options.scale
    own = {
        "hosts": 12,
        "link": "10gbit",
        "mtu": 1500,
        "load": 0.8,
        "offload": offload,
        "warmup": f"{20 * options.scale:.6g}ms",
        "measure": f"{measure:.6g}ms",
        "drain": f"{4 * measure:.6g}ms",
    }
    return merge(atc("homa", "w4", options, 1.0, **CORES), own, more)


def _tenth(results: list[dict], number: int, percent: float):  # noqa: ANN202
    return tails.tail(tails.decile(results, number), percent, 1e-3)


def snia_offload(lab: Lab, options: Options) -> Output:
    """W4 at 10 Gbit/s: what each of the card's offloads gives."""
    specs: dict[object, Spec] = {n: _offload_spec(n, options) for n in OFFLOADS}
    for name, slow in SLOW.items():
        specs[slow] = _offload_spec(name, options, cost=["mips=1000"])
    points = Points(lab, options, specs)
    theirs = published()["offload"]
    rows = []
    for percent in (50, 99):
        before, after = (_tenth(points[name], LONG, percent) for name in ("none", "all"))
        what = f"longest tenth, P{percent} of the round trip, no offload to all"
        times = tails.ratio(before, after)
        rows.append(compare.like(what, theirs["times"], times, "", theirs["factor"]))
    for percent in (50, 99):
        before, after = (_tenth(points[slow], LONG, percent) for slow in SLOW.values())
        what = f"the same at 1 ns an instruction, P{percent}"
        rows.append(compare.info(what, theirs["times"], tails.ratio(before, after)))
    for name, title in OFFLOADS.items():
        for number, size in ((SHORT, "shortest"), (LONG, "longest")):
            for percent in (50, 99):
                ours = _tenth(points[name], number, percent)
                rows.append(compare.info(f"{title}, {size} tenth, P{percent}", None, ours, "µs", 1))
        used = points.stat(name, "sim", "software", "cores_used", "total")
        rows.append(compare.info(f"{title}, cores used", None, used))
    records = [
        [name, number, percent, *cell(_tenth(points[name], number, percent))]
        for name in OFFLOADS
        for number in range(1, 11)
        for percent in (50, 99)
    ]

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.8, 5.0, 1, 2) as (figure, panels):
            figure.subplots_adjust(left=0.075, right=0.985, top=0.8, bottom=0.12)
            draw.headline(
                figure,
                "Round trips by message size, W4 at 80 % of 10 Gbit/s (SNIA’24, simulated)",
                f"each offload of the card alone, and all; {options.words()}",
                0.075,
            )
            shades = draw.ramp(len(OFFLOADS))
            for panel, percent in zip(panels[0], (50, 99), strict=True):
                for (name, title), shade in zip(OFFLOADS.items(), shades, strict=True):
                    found = [(n, _tenth(points[name], n, percent)) for n in range(1, 11)]
                    known = [(n, v.mean) for n, v in found if isinstance(v, Stat)]
                    panel.plot(*zip(*known, strict=True), color=shade, label=title) if known else 0
                draw.plain(panel)
                panel.set_yscale("log")
                panel.set_xlabel("tenth of the messages by size")
                panel.set_ylabel(f"P{percent}, µs")
            draw.legend(figure, *panels[0, 0].get_legend_handles_labels(), columns=5)
            return finish(figure, stem)

    return Output(
        "SNIA'24, simulated: Homa's offloads in the card, W4 at 10 Gbit/s",
        ["offload", "tenth", "percentile", "us", "ci95"],
        records,
        rows,
        paint,
        {},
        [
            "The talk's results are pictures of curves: about five times for messages much longer than a "
            "packet. It does not say hosts, load or processor; 12 hosts at 80 % are ours.",
            "By counted costs a packet alone takes 0.86 µs of its NAPI core and 1.15 µs of a softirq core, "
            "which changes, and 1.23 µs on this link: software keeps up, and lro finds few to join.",
            "Our lro joins what waits and holds nothing back; one that waits for more would join more.",
            "The clock of 2.4 GHz at an instruction a cycle is an assumption, hence the rows at 1 ns an "
            "instruction: 2.4 times slower software makes no difference either.",
        ],
    )


FIGURES = [
    Figure("atc-cores", "software: best round trip, cores used by each part", atc_cores),
    Figure("snia-offload", "offloads of the network card, W4 at 10 Gbit/s", snia_offload),
]
