# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The simulator against what can be calculated: idle network, one queue, incast, conservation.

One switch, Homa, messages of one packet. What is to come out follows from rates and delays alone:

* alone, a message takes exactly the time that the idle network takes: slowdown 1;
* a link that messages reach at random times waits as the queue M/D/1 does (Pollaczek, Khinchine):
  load · packet time / (2 · (1 - load)) on average;
* of N messages sent to one host at the same moment the last arrives N - 1 packet times late;
* packets sent are packets received, dropped or on their way; messages started are delivered, failed
  or not finished.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from pathlib import Path

from lab.sim import compare, draw
from lab.sim.arrivals import recorded
from lab.sim.figures.base import Figure, Options, Output, Points, finish
from lab.sim.pool import Lab
from lab.sim.spec import Spec
from lab.sim.stats import Stat, stat
from lab.sim.sweep import pick

HOSTS = 144
SIZE = 1000  # message bytes, one packet
LINK_GBPS = 10
LOADS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
INCAST = (2, 10, 50, 140)
IDLE = (1, 100, 1442, 10_000, 1_000_000)
_MESSAGES, _QUICK_MESSAGES = 400_000, 60_000


def packet_ns(wire: float) -> float:
    """Time of so many bytes on a link."""
    return wire * 8 / LINK_GBPS


def waiting_ns(load: float, service_ns: float) -> float:
    """Mean wait in an M/D/1 queue."""
    return load * service_ns / (2 * (1 - load))


def poisson(seed: int, load: float, service_ns: float, messages: int) -> tuple[list[str], float]:
    """Messages to host 0 at random times from random other hosts, and the load that chance made."""
    rng, now, lines = random.Random(f"{seed}, {load}"), 0.0, []
    for _ in range(messages):
        now += rng.expovariate(load / service_ns)
        lines.append(f"{now:.0f},{rng.randrange(1, HOSTS)},0,{SIZE}")
    return lines, messages * service_ns / now


def incast(senders: int) -> Iterator[str]:
    """One message of each to host 0, all at once."""
    for sender in range(1, senders + 1):
        yield f"0,{sender},0,{SIZE}"


def _spec(**more: object) -> Spec:
    return {"protocol": "homa", "topology": "one-switch", "hosts": HOSTS, "drain": "100ms", **more}


def _idle_spec(size: int) -> Spec:
    # So rare that two messages hardly ever meet; the least slowdown is that of one alone.
    load = min(0.01, 1e-5 * size)
    return _spec(
        workload=f"fixed:{size}", load=load, warmup="0ns", measure="20ms", **{"max-messages": 2000}
    )


def conserved(result: dict) -> bool:
    """Whether nothing was lost or made without being counted."""
    c = result["sim"]["counts"]
    packets = c["packets_received"] + c["packets_dropped"] + c["packets_on_their_way"]
    messages = c["messages_delivered"] + c["messages_failed"] + result["sim"]["unfinished"]
    return c["packets_sent"] == packets and c["messages_started"] == messages


def analytic(lab: Lab, options: Options) -> Output:
    """All four."""
    wire = _wire(lab)
    service = packet_ns(wire)
    count = _QUICK_MESSAGES if options.quick else _MESSAGES
    specs: dict[object, Spec] = {("idle", size): _idle_spec(size) for size in IDLE}
    for n in INCAST:
        path = recorded(lab.store.folder, f"incast-{n}", incast(n))
        specs["incast", n] = _spec(arrivals=path, warmup="0ns", measure="1ms")
    seeds, actual = options.seed_list(), {}
    for load in LOADS:
        for seed in seeds:
            lines, actual[load, seed] = poisson(seed, load, service, count)
            path = recorded(lab.store.folder, f"md1-{load}-{count}-{seed}", iter(lines))
            length = f"{count * service / load / 1e6 * 1.1:.6g}ms"
            specs["md1", load, seed] = _spec(arrivals=path, warmup="0ns", measure=length)
    points = Points(lab, Options(options.quick, 1), specs)
    idle_ns = _latency(points["incast", INCAST[0]], "min")
    rows: list[compare.Row] = []
    for size in IDLE:
        least = [pick(r, ("slowdown", "min")) for r in points["idle", size]]
        rows.append(
            compare.like(f"alone, {size:,} bytes, least slowdown", 1, stat(least), "", 1.001)
        )
    waits: dict[float, Stat | None] = {}
    theory: dict[float, float] = {}
    for load in LOADS:
        found = []
        for seed in seeds:
            mean = _latency(points["md1", load, seed], "mean")
            found.append(None if mean is None or idle_ns is None else mean - idle_ns)
        waits[load] = stat(found)
        theory[load] = statistics.fmean(
            # Arrivals of one sender meet in its own port, too, rarely.
            waiting_ns(actual[load, seed], service)
            + waiting_ns(actual[load, seed] / (HOSTS - 1), service)
            for seed in seeds
        )
        rows.append(
            compare.like(
                f"M/D/1 at {100 * load:.0f} %, mean wait", theory[load], waits[load],
                "ns", 1.02,
            )
        )  # fmt: skip
    for n in INCAST:
        most = _latency(points["incast", n], "max")
        late = stat([None if most is None or idle_ns is None else most - idle_ns])
        rows.append(compare.like(f"incast of {n}, lateness of the last", (n - 1) * service, late,
                                 "ns", 1.001))  # fmt: skip
    runs = [result for key in points.keys() for result in points[key]]
    kept = (
        Stat(100 * sum(conserved(r) for r in runs) / len(runs), None, len(runs)) if runs else None
    )
    rows.append(compare.about("runs in which nothing was lost uncounted", 100, kept, 0))

    def paint(stem: Path) -> list[Path]:
        return _paint(stem, service, waits)

    return Output(
        "The simulator against calculations",
        ["load", "messages", "wait_ns", "ci95", "md1_ns"],
        [
            [load, count * len(seeds), w.mean if w else "", (w.half or "") if w else "",
             theory[load]]
            for load, w in waits.items()
        ],
        rows,
        paint,
        {"worst_percent": _worst(rows)},
        [
            f"144 hosts at 10 Gbit/s around one switch; messages of {SIZE} bytes, {wire:.0f} on the wire, "
            f"{service:.0f} ns; {count * len(seeds):,} messages at each load.",
            "Published here means calculated, for the load that chance made of the one that was asked for.",
        ],
    )  # fmt: skip


def _wire(lab: Lab) -> float:
    """Bytes on the wire of a message, from what one run of them sent."""
    path = recorded(lab.store.folder, "one", iter([f"0,1,0,{SIZE}"]))
    (result,) = lab.results([_spec(arrivals=path, warmup="0ns", measure="1ms", seed=1)])
    bits = pick(result or {}, ("throughput", "wire_gbps"))
    seconds = pick(result or {}, ("time", "window_s"))
    return bits * seconds * 1e9 / 8 if bits and seconds else 0.0


def _latency(results: list[dict], name: str) -> float | None:
    return pick(results[0], ("latency_ns", name)) if results else None


def _worst(rows: list[compare.Row]) -> float | None:
    gaps = [
        100 * abs(row.ours.mean / row.published - 1)
        for row in rows
        if isinstance(row.ours, Stat) and row.published
    ]
    return max(gaps) if gaps else None


def _paint(stem: Path, service: float, waits: dict[float, Stat | None]) -> list[Path]:
    with draw.canvas(7.6, 4.4) as (figure, panels):
        figure.subplots_adjust(left=0.11, right=0.97, top=0.83, bottom=0.12)
        draw.headline(
            figure, "Mean wait at one link: simulated and M/D/1",
            f"messages of {SIZE} bytes from 143 hosts to one, Poisson", 0.11,
        )  # fmt: skip
        panel = panels[0, 0]
        draw.plain(panel, "both")
        loads = [n / 200 for n in range(2, 185)]
        panel.plot([100 * x for x in loads], [waiting_ns(x, service) / 1e3 for x in loads],
                   color=draw.PAPER, linewidth=1.2, label="calculated")  # fmt: skip
        shown = [(100 * load, w) for load, w in waits.items() if w]
        panel.errorbar(
            [x for x, _ in shown], [w.mean / 1e3 for _, w in shown],
            yerr=[(w.half or 0) / 1e3 for _, w in shown], color=draw.BLUE, marker="o",
            linestyle="none", markersize=6, capsize=2, label="simulated",
        )  # fmt: skip
        panel.set_xlim(0, 100)
        panel.set_ylim(bottom=0)
        panel.set_xlabel("load, % of the link")
        panel.set_ylabel("mean wait, µs")
        panel.legend(frameon=False, loc="upper left")
        return finish(figure, stem)


FIGURES = [Figure("analytic", "the simulator against calculations: idle, M/D/1, incast", analytic)]
