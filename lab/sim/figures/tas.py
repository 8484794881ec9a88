# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TAS, EuroSys 2019, section 5.5: congestion control once in a control interval.

In every simulated host runs the TCP engine; window DCTCP of the same engine stands beside it, and
the simulator's models of DCTCP and TCP. The models' connections exist before the run, the engine's
are opened with a handshake. Arrivals are files, the same for all with the same seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.sim import compare, draw
from lab.sim.arrivals import recorded
from lab.sim.compare import Row
from lab.sim.figures.base import Figure, Options, Output, cell, finish
from lab.sim.pool import Lab
from lab.sim.published import published
from lab.sim.spec import Spec, merge
from lab.sim.stats import Stat, stat
from lab.sim.sweep import pick
from lab.sim.tails import LEAST

RTT_US = 100
# Bounded Pareto: shape, least and largest bytes; the mean is about 100 KB.
SHAPE, SMALLEST, LARGEST = 1.2, 20_000, 30_000_000
# One way: sending, link, switch, link, receiving are half of RTT_US.
SLOW_LINKS: Spec = {
    "link": "10gbit",
    "link-delay": "24us",
    "switch-delay": "500ns",
    "send-delay": "750ns",
    "receive-delay": "750ns",
}


@dataclass(frozen=True)
class Series:
    """A protocol with its settings, as it is told and drawn."""

    key: str
    title: str
    spec: Spec
    color: str


def _tas(interval: int = 0) -> Spec:
    return {"protocol": "tas", "set": {"congestion": 3, "control-interval": interval}}


WINDOW = Series("window", "DCTCP by window, same engine",
                {"protocol": "tas", "set": {"congestion": 1}}, draw.BLUE)  # fmt: skip
MODELS = (
    Series("dctcp", "DCTCP, model", {"protocol": "dctcp", "set": {"streams": 0}}, draw.GREEN),
    Series("tcp", "TCP, model", {"protocol": "tcp", "set": {"streams": 0}}, draw.RED),
)


# ---- arrivals ----


def _size(rng: random.Random) -> int:
    """Of a flow, by inverting the bounded Pareto distribution."""
    low, high = SMALLEST**-SHAPE, LARGEST**-SHAPE
    return round((low - rng.random() * (low - high)) ** (-1 / SHAPE))


def mean_size() -> float:
    """Of _size(), bytes."""
    ratio = SMALLEST / LARGEST
    return SMALLEST * SHAPE / (SHAPE - 1) * (1 - ratio ** (SHAPE - 1)) / (1 - ratio**SHAPE)


def _poisson(seed: int, seconds: float, rate: float) -> Iterator[tuple[int, random.Random]]:
    """Times in ns of events at `rate` per second."""
    rng = random.Random(seed)
    now = 0.0
    while (now := now + rng.expovariate(rate)) < seconds:
        yield int(now * 1e9), rng


def link_arrivals(seed: int, seconds: float, senders: int) -> Iterator[str]:
    """Flows to host 0 from the others, 75 % of 10 Gbit/s."""
    for at, rng in _poisson(seed, seconds, 0.75 * 1.25e9 / mean_size()):
        yield f"{at},{rng.randint(1, senders)},0,{_size(rng)}"


def cluster_arrivals(seed: int, seconds: float, hosts: int, load: float) -> Iterator[str]:
    """Flows between random hosts that take `load` of their links of 10 Gbit/s."""
    for at, rng in _poisson(seed, seconds, hosts * load * 1.25e9 / mean_size()):
        src = rng.randrange(hosts)
        dst = (src + rng.randrange(1, hosts)) % hosts
        yield f"{at},{src},{dst},{_size(rng)}"


def incast_arrivals(seed: int, connections: int, size: int) -> Iterator[str]:
    """Connections from four hosts to host 0, within a millisecond, equally long."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(1_000_000) for _ in range(connections))
    for index, at in enumerate(times):
        yield f"{at},{1 + index % 4},0,{size}"


# ---- results ----


class Flows:
    """What several seeds of one point have measured."""

    def __init__(self, results: Sequence[dict | None]) -> None:
        self.results = [r for r in results if r]

    def _parts(self, result: dict, deciles: range) -> list[dict]:
        return [
            d["latency_ns"] for d in result.get("deciles", [])
            if d.get("decile") in deciles and d.get("latency_ns", {}).get("count")
        ]  # fmt: skip

    def count(self, deciles: range = range(1, 11)) -> int:
        """Flows of all seeds."""
        return sum(p["count"] for r in self.results for p in self._parts(r, deciles))

    def mean_us(self, deciles: range = range(1, 11)) -> Stat | None:
        """Flow completion time, mean of each seed."""
        values = []
        for result in self.results:
            shapes = [p["histogram"] for p in self._parts(result, deciles)]
            count = sum(s["count"] for s in shapes)
            values.append(sum(s["sum"] for s in shapes) / count / 1000 if count else None)
        return stat(values)

    def percentile_us(self, share: float, deciles: range = range(1, 11)) -> float | None:
        """Of the flows of all seeds together; None of fewer than LEAST."""
        found: list[tuple[int, int]] = []
        for result in self.results:
            for part in self._parts(result, deciles):
                shape = part["histogram"]
                found += zip(shape["values"], shape["counts"], strict=True)
        total = sum(count for _, count in found)
        if total < LEAST:
            return None
        seen = 0
        for value, count in sorted(found):
            seen += count
            if seen >= math.ceil(share * total):
                return value / 1000
        return None

    def queue_kb(self) -> Stat | None:
        """At the port that had the longest, mean over time."""
        place = ("sim", "queues", "host-down", "mean_bytes_worst_port")
        values = [pick(result, place) for result in self.results]
        return stat(v / 1000 for v in values if v is not None)


def _run(lab: Lab, options: Options, specs: dict[object, Spec], arrivals) -> dict:  # noqa: ANN001
    """Flows by key; `arrivals` gives the file for (key, seed)."""
    seeds = options.seed_list()
    wanted = [
        merge(spec, {"seed": seed, "arrivals": arrivals(key, seed)})
        for key, spec in specs.items() for seed in seeds
    ]  # fmt: skip
    found = lab.results(wanted)
    return {key: Flows(found[i * len(seeds) : (i + 1) * len(seeds)]) for i, key in enumerate(specs)}


def _ratio(one: Stat | None, other: Stat | None) -> Stat | None:
    if not one or not other or not other.mean:
        return None
    return Stat(one.mean / other.mean, None, min(one.count, other.count))


def _similar(what: str, ours: Stat | None, figure: str) -> list[Row]:
    """Rows for "very similar"; none without a result."""
    theirs, factor = published()[figure], published()["goals"]["tas_similar"]
    return [compare.like(what, theirs["ratio"], ours, factor=factor)] if ours else []


def _number(value: float | None) -> object:
    return "" if value is None else f"{value:.6g}"


# ---- Figure 11 ----


def link(lab: Lab, options: Options) -> Output:
    """One link of 10 Gbit/s, by control interval."""
    taus = (25, 50, 100, 200, 400, 800) if options.quick else (10, 25, 50, 100, 200, 400, 800, 1600)
    seconds = (0.4 if options.quick else 2.0) * options.scale
    senders = 16
    base = merge(SLOW_LINKS, {"topology": "one-switch", "hosts": senders + 1, "drain": "500ms"})
    files = {
        seed: recorded(
            lab.store.folder, f"tas-11-{seconds:g}-{seed}", link_arrivals(seed, seconds, senders)
        )
        for seed in options.seed_list()
    }
    lines = (WINDOW, *MODELS)
    specs: dict[object, Spec] = {tau: merge(base, _tas(tau)) for tau in taus}
    specs.update({s.key: merge(base, s.spec) for s in lines})
    flows = _run(lab, options, specs, lambda _, seed: files[seed])
    fct = {key: flows[key].mean_us() for key in specs}
    queue = {key: flows[key].queue_kb() for key in specs}
    two = 2 * RTT_US
    rows = [
        *_similar("FCT at τ of 2 RTT, to DCTCP by window", _ratio(fct[two], fct["window"]), "tas11"),
        *_similar("queue at τ of 2 RTT, to DCTCP by window", _ratio(queue[two], queue["window"]),
                  "tas11"),
        compare.info("FCT at τ of RTT / 4, to that of 2 RTT", None, _ratio(fct[25], fct[two])),
        compare.info("queue at τ of 8 RTT, to that of 1 RTT", None,
                     _ratio(queue[800], queue[RTT_US])),
    ]  # fmt: skip

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.6, 3.9, 1, 2) as (figure, panels):
            figure.subplots_adjust(left=0.08, right=0.985, top=0.74, bottom=0.15, wspace=0.24)
            draw.headline(
                figure,
                "TAS, Figure 11: one link of 10 Gbit/s at 75 %, RTT 100 µs, by control interval",
                f"Pareto sizes, mean {mean_size() / 1000:.0f} KB; n = "
                f"{flows[two].count():,} flows for each point; {options.words()}",
            )
            for panel, values, label in zip(
                panels[0], (fct, queue), ("average FCT, µs", "average queue, KB"), strict=True
            ):
                points = [
                    (tau, values[tau].mean, values[tau].half or 0) for tau in taus if values[tau]
                ]
                x, y, half = zip(*points, strict=True)
                panel.errorbar(x, y, yerr=half, color=draw.ORANGE, marker="o", markersize=4.2,
                               linewidth=1.8, label="TAS: DCTCP by rate", zorder=4)  # fmt: skip
                for series in lines:
                    if values[series.key]:
                        panel.axhline(values[series.key].mean, color=series.color, linewidth=1.4,
                                      linestyle=(0, (5, 2)), label=series.title)  # fmt: skip
                panel.set_xscale("log")
                panel.set_xticks(list(taus), [str(t) for t in taus])
                panel.minorticks_off()
                panel.set_ylim(bottom=0)
                if label.startswith("average q") and values["tcp"]:
                    panel.set_yscale("symlog", linthresh=100)
                panel.set_xlabel("control interval τ, µs")
                panel.set_ylabel(label)
                draw.plain(panel)
            draw.legend(figure, *panels[0][0].get_legend_handles_labels())
            return finish(figure, stem)

    titles = {s.key: s.title for s in lines}
    return Output(
        "TAS, Figure 11: FCT and queue by control interval",
        ["control", "tau_us", "n", "fct_us", "fct_ci95", "fct_p99_us", "queue_kb", "queue_ci95"],
        [
            [
                titles.get(key, "TAS"),
                key if key in taus else "",
                flows[key].count(),
                *cell(fct[key]),
                _number(flows[key].percentile_us(0.99)),
                *cell(queue[key]),
            ]
            for key in specs
        ],  # fmt: skip
        rows,
        paint,
        notes=[
            'The paper gives curves without numbers; its text says "very similar", which stands here '
            "as 1, and as met up to a quarter more.",
            "What differs: the shape and mean of the sizes, which the paper does not say "
            f"(ours: Pareto, shape {SHAPE}, {SMALLEST:,} to {LARGEST:,} bytes). The paper's step of "
            "10 Mbit/s in an interval of 2 RTT is a 23rd of what a window of DCTCP grows by, so long "
            "flows take longer to get back what they gave up, and the more so the longer τ is.",
        ],
    )


# ---- Figure 12 ----


def cluster(lab: Lab, options: Options) -> Output:
    """A fat tree, oversubscribed 1:4, its core at 30 %."""
    k, hosts, fabric = (4, 256, "40gbit") if options.quick else (8, 2560, "50gbit")
    seconds = 0.02 * options.scale
    # Of a host's flows so many leave its pod, and there is a quarter of the hosts' rate.
    load = 0.3 / 4 / (1 - 1 / k)
    base: Spec = {
        "topology": "fat-tree", "k": k, "hosts": hosts, "link": "10gbit", "fabric": fabric,
        "link-delay": "5us", "fabric-delay": "5us", "drain": "300ms",
    }  # fmt: skip
    series = (
        Series("100", "TAS, τ = 100 µs", _tas(100), draw.ORANGE),
        Series("400", "TAS, τ = 400 µs", _tas(400), draw.YELLOW),
        WINDOW,
        *MODELS,
    )
    files = {
        seed: recorded(
            lab.store.folder,
            f"tas-12-{k}-{seconds:g}-{seed}",
            cluster_arrivals(seed, seconds, hosts, load),
        )
        for seed in options.seed_list()
    }
    flows = _run(lab, options, {s.key: merge(base, s.spec) for s in series},
                 lambda _, seed: files[seed])  # fmt: skip
    classes = {"shortest half of the flows": range(1, 6), "longest tenth": range(10, 11)}
    fct = {(s.key, c): flows[s.key].mean_us(d) for s in series for c, d in classes.items()}
    rows = []
    for c in classes:
        what = f"FCT at τ of 100 µs, {c}, to DCTCP by window"
        rows += _similar(what, _ratio(fct["100", c], fct["window", c]), "tas12")
    for c in classes:
        if bigger := _ratio(fct["400", c], fct["100", c]):
            rows.append(compare.info(f"FCT at τ of 400 µs, {c}, to 100 µs", 1.0, bigger))

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(9.6, 3.6, 1, 2) as (figure, panels):
            figure.subplots_adjust(left=0.24, right=0.97, top=0.76, bottom=0.15, wspace=0.12)
            draw.headline(
                figure,
                f"TAS, Figure 12: fat tree of {hosts:,} hosts, 1:4 oversubscribed, core at 30 %",
                f"n = {flows['100'].count():,} flows for each; {options.words()}",
                0.03,
            )
            for panel, c in zip(panels[0], classes, strict=True):
                shown = [s for s in series if fct[s.key, c]]
                panel.barh(
                    [s.title for s in shown],
                    [fct[s.key, c].mean for s in shown],
                    xerr=[fct[s.key, c].half or 0 for s in shown],
                    color=[s.color for s in shown],
                    height=0.6,
                    error_kw={"elinewidth": 0.9, "ecolor": draw.INK},
                )
                panel.invert_yaxis()
                panel.set_xlabel("average FCT, µs")
                panel.set_title(c, loc="left", fontsize=9.5, fontweight="bold")
                draw.plain(panel, "x")
            panels[0][1].set_yticklabels([])
            return finish(figure, stem)

    return Output(
        "TAS, Figure 12: FCT in a large cluster",
        ["control", "class", "n", "fct_us", "fct_ci95", "fct_p99_us"],
        [
            [
                s.title,
                c,
                flows[s.key].count(d),
                *cell(fct[s.key, c]),
                _number(flows[s.key].percentile_us(0.99, d)),
            ]
            for s in series
            for c, d in classes.items()
        ],  # fmt: skip
        rows,
        paint,
        notes=[
            'The paper gives curves without numbers; its text says "similar", which stands here as '
            "1, and as met up to a quarter more.",
            f"What differs: {hosts:,} hosts and {5 * k * k // 4} switches instead of 2,560 and 112; "
            "arrivals are Poisson instead of on and off; the sizes, as in tas-11.",
        ],
    )


# ---- Figure 13 ----


def incast(lab: Lab, options: Options) -> Output:
    """Four hosts with many connections to one."""
    counts = (100, 400, 1000) if options.quick else (50, 100, 200, 500, 1000, 2000)
    size = 250_000 if options.quick else 1_000_000
    base = merge(SLOW_LINKS, {"topology": "one-switch", "hosts": 5, "drain": "20s"})
    series = (Series("tas", "TAS, τ = 2 RTT", _tas(), draw.ORANGE), WINDOW, MODELS[0])
    files = {
        (n, seed): recorded(lab.store.folder, f"tas-13-{n}-{size}-{seed}", incast_arrivals(seed, n, size))
        for n in counts for seed in options.seed_list()
    }  # fmt: skip
    specs: dict[object, Spec] = {(s.key, n): merge(base, s.spec) for s in series for n in counts}
    flows = _run(lab, options, specs, lambda key, seed: files[key[1], seed])
    low, high = published()["tas13"]["tail"]
    rows, tails = [], {}
    for key, found in flows.items():
        median, slow = found.percentile_us(0.5), found.percentile_us(0.99)
        if median and slow:
            tails[key] = slow / median
    for n in counts:
        if ("tas", n) in tails:
            ours = Stat(tails["tas", n], None, len(options.seed_list()), flows["tas", n].count())
            what = f"median rate to that of the slowest 1 %, {n} connections"
            rows.append(compare.between(what, low, high, ours))
    if fair := flows["tas", counts[-1]].mean_us():
        share = Stat(size * 8 / fair.mean / (10_000 / counts[-1]), None, fair.count)
        rows.append(
            compare.info(f"mean rate to the fair share, {counts[-1]} connections", 1.0, share)
        )

    def paint(stem: Path) -> list[Path]:
        with draw.canvas(7.2, 3.9) as (figure, panels):
            panel = panels[0][0]
            figure.subplots_adjust(left=0.1, right=0.97, top=0.74, bottom=0.14)
            draw.headline(
                figure,
                "TAS, Figure 13: four hosts to one of 10 Gbit/s",
                f"{size / 1000:,.0f} KB each; n = connections × {len(options.seed_list())}, no tail of "
                f"n < {LEAST:,}; {options.words()}",
                0.03,
            )
            panel.axhspan(low, high, color=draw.GRID, label="published, TAS")
            for s in series:
                points = [(n, tails[s.key, n]) for n in counts if (s.key, n) in tails]
                if points:
                    panel.plot(*zip(*points, strict=True), color=s.color, marker="o",
                               markersize=4.2, linewidth=1.8, label=s.title)  # fmt: skip
            panel.set_xscale("log")
            panel.set_xticks(list(counts), [f"{n:,}" for n in counts])
            panel.minorticks_off()
            panel.set_ylim(bottom=0)
            panel.set_xlabel("connections")
            panel.set_ylabel("median rate / 1st percentile")
            draw.plain(panel)
            draw.legend(figure, *panel.get_legend_handles_labels())
            return finish(figure, stem)

    return Output(
        "TAS, Figure 13: tail of connections' rates under incast",
        ["control", "connections", "n", "mean_fct_us", "ci95", "p50_fct_us", "p99_fct_us", "tail"],
        [
            [
                s.title,
                n,
                flows[s.key, n].count(),
                *cell(flows[s.key, n].mean_us()),
                _number(flows[s.key, n].percentile_us(0.5)),
                _number(flows[s.key, n].percentile_us(0.99)),
                _number(tails.get((s.key, n))),
            ]
            for s in series
            for n in counts
        ],  # fmt: skip
        rows,
        paint,
        notes=[
            "What differs: the paper counts the bytes of lasting connections in each 100 ms of a "
            "minute; here each connection sends as much and its rate is that over its life, so "
            "those left at the end go faster. Linux's network stack is not simulated.",
        ],
    )


FIGURES = [
    Figure("tas-11", "TAS: FCT and queue on one link by control interval", link),
    Figure("tas-12", "TAS: FCT in a fat tree of 2,560 hosts", cluster),
    Figure("tas-13", "TAS: tail of connections' rates under incast", incast),
]
