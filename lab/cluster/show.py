# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa lab run` shows: a table per point, a summary, a figure, a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.cluster import common_text, goals, plot
from lab.cluster.real_and_simulated import Compared, short_ratio
from lab.cluster.points import FIGURES, TITLES
from lab.cluster.setup import Setup
from lab.console import console, table
from lab.sim.published import published
from lab.sim.tails import LEAST
from lab.units import format_bytes, format_rate, format_ratio


def begin(name: str, setup: Setup, where: str) -> None:
    """Say what is going to be measured, and on what."""
    slower = f"{setup.dilate:g} times slower" if setup.dilate else "as much slower as needed"
    made = "" if setup.real else f" made {slower}"
    kind = "real hosts" if setup.real else "hosts"
    what = (
        f"{FIGURES[name].title}: {setup.hosts} {kind}, {format_rate(setup.link_bps)} links{made}, "
        f"MTU {setup.mtu}, {setup.buffer:,} bytes of buffer per port"
        f"{' (of the simulator)' if setup.real else ''}, seed {setup.seed}"
    )
    common_text.begin([what], [where])


def point(one: Compared) -> None:
    """The table of a point, and whether it counts."""
    facts = one.facts
    title = (
        f"{one.workload.upper()}, {one.label}: {format_rate(facts['link_bps'])} "
        f"({facts['dilation']:g} times slower), payload {one.load:.1%} of the links, "
        f"{facts['window_s']:g} s"
    )
    grid = table(
        title, "message\nbytes", "n", "P50\nlab", "\nsim", "sim /\nlab", "P99\nlab", "\nsim",
        "sim /\nlab", "slowdown\nP99",
    )  # fmt: skip
    for row in one.rows:
        low, high = format_bytes(row.size_low), format_bytes(row.size_high)
        cells = []
        for name in ("p50", "p99"):
            cells += [
                common_text.us(row.lab[name]),
                common_text.us(row.sim[name]),
                format_ratio(row.ratio(name)),
            ]
        grid.add_row(
            low if low == high else f"{low} – {high}",
            f"{row.count:,}",
            *cells,
            format_ratio(row.slowdown("lab", "p99")),
        )
    out = console()
    out.print(grid)
    common_text.line(queue_words(facts))
    again = again_words(facts)
    if again:
        common_text.line(again)
    for doubt in one.doubts:
        common_text.line(f"does not count: {doubt}")
    out.print("")


def queue_words(facts: dict[str, float]) -> str:
    """How busy the machine was, and what its queues did, beside the simulator's."""
    if "drops" not in facts:
        return (
            f"processors at most {facts['busy']:.0%} busy; drops and queues of the switch are not known "
            f"(sim {facts['sim_drops']:,.0f}, {facts['sim_peak_queue'] / 1e3:,.0f} KB); software "
            f"{facts['sim_delay_ns'] / 1e3:,.1f} µs each way"
        )
    text = f"processors {facts['busy']:.0%} busy; drops {facts['drops']:,.0f}"
    longest = f"longest queue {facts['peak_queue'] / 1e3:,.0f} KB"
    if "sim_drops" not in facts:
        return f"{text}, {longest}; not simulated"
    return (
        f"{text} (sim {facts['sim_drops']:,.0f}), {longest} (sim {facts['sim_peak_queue'] / 1e3:,.0f}); "
        f"software {facts['sim_delay_ns'] / 1e3:,.1f} µs each way"
    )


def again_words(facts: dict[str, float]) -> str:
    """What was sent again; "" if the run does not say it."""
    if "retransmits" not in facts or "sim_retransmits" not in facts:
        return ""
    text = f"sent again {facts['retransmits']:,.0f} packets (sim {facts['sim_retransmits']:,.0f}"
    if "sim_timeouts" in facts:
        text += f", {facts['sim_timeouts']:,.0f} time-outs"
        text += f", of which {facts.get('sim_timeouts_undone', 0):,.0f} undone"
    if "restarts" not in facts:
        return f"{text})"
    return (
        f"{text}); {facts['rx_duplicates']:,.0f} came twice, {facts['restarts']:,.0f} requests started "
        f"over; for {facts['buffer_waits']:,.0f} messages there was no receive buffer at first, "
        f"{facts['buffers_given_back']:,.0f} gave theirs back"
    )


def summary(name: str, points: Sequence[Compared]) -> list[dict[str, object]]:
    """The figure's own numbers: lab, simulator, paper."""
    found: list[dict[str, object]] = []
    if FIGURES[name].varies == "transport":
        theirs = published()["atc"]
        for workload in dict.fromkeys(one.workload for one in points):
            for transport in dict.fromkeys(one.transport for one in points):
                if transport == "homa":
                    continue
                paper = theirs["tcp"][workload][1] / theirs["homa"][workload][1]
                what = f"{workload.upper()}, shortest tenth, P99 of {TITLES[transport]} to Homa"
                lab, sim = (short_ratio(points, workload, transport, w) for w in ("lab", "sim"))
                found.append({"what": what, "lab": lab, "sim": sim, "paper": paper})
        return found
    homa = [one for one in points if one.transport == "homa" and one.rows]
    if len(homa) > 1:
        pairs = {w: [getattr(one.rows[0], w)["p99"] for one in homa] for w in ("lab", "sim")}
        if FIGURES[name].varies == "levels":
            # Two levels to all of them.
            chosen = [one.levels for one in homa]
            if 2 not in chosen or max(chosen) == 2:
                return found
            what = f"shortest tenth, P99 with 2 levels to {max(chosen)}"
            two, all_of = chosen.index(2), chosen.index(max(chosen))
            spread = {w: _over(v[two], v[all_of]) for w, v in pairs.items()}
        else:
            what = "Homa, shortest tenth, P99, largest to smallest of the loads"
            spread = {w: _over(_most(v, max), _most(v, min)) for w, v in pairs.items()}
        paper = 2.0 if FIGURES[name].varies == "load" else None
        found.append({"what": what, **spread, "paper": paper})
    return found


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def _most(values: list[float | None], pick) -> float | None:  # noqa: ANN001
    known = [value for value in values if value is not None]
    return pick(known) if len(known) == len(values) else None


def end(
    name: str, setup: Setup, points: list[Compared], json_file: Path | None, figure: Path | None
) -> None:
    """The summary, the figure and the file."""
    rows = summary(name, points)
    out = console()
    if rows:
        grid = table("", "", "lab", "sim", "paper")
        for row in rows:
            values = (row["lab"], row["sim"], row["paper"])
            grid.add_row(str(row["what"]), *(format_ratio(v) for v in values))  # type: ignore[arg-type]
        out.print(grid)
    few = sum(1 for one in points for row in one.rows if row.count < LEAST)
    if few:
        out.print(f"– : fewer than {LEAST:,} messages ({few} rows); --messages for more")
    if figure:
        plot.paint(FIGURES[name].title, points, figure)
        out.print(f"Figure: {figure}", markup=False)
    document: dict[str, object] = {
        "summary": rows,
        "goals": goals.numbers(name, points),
        "points": [one.as_json() for one in points],
    }
    common_text.save(json_file, f"lab-run {name}", setup, document)
