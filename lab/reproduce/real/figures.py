# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""ATC'21's Figures 3, 5 and 6 on real packets, with the simulator beside them.

Short messages are the shortest tenth. What holds for every tenth of the messages by size is judged by
the one that is worst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.cluster import plot
from lab.cluster.points import FIGURES, SHARES, TITLES
from lab.cluster.real_and_simulated import SLOW_NS, Compared, Row, divided
from lab.reproduce.real.experiment import (
    One, Runs, Value, compared_with_simulated, goal, notes, off, over_seeds, painted, worst,
)  # fmt: skip
from lab.sim import compare, tails
from lab.sim.figures.base import Output
from lab.sim.published import published
from lab.units import format_percent

PART = 0.75  # of the published TCP to Homa, that ours has to reach
BOTH = ("p50", "p99")
_COLUMNS = [
    "seed", "workload", "label", "transport", "load", "levels", "tenth", "from_bytes", "to_bytes",
    "n", "n_sim", "p50_us", "p99_us", "sim_p50_us", "sim_p99_us", "slowdown_p99", "slowdown_p99_sim",
    "slow_share", "slow_share_sim",
]  # fmt: skip

# A tenth of which there is no message.
_NONE = Row(0, 0, 0, 0, 0.0, 0.0, dict.fromkeys(BOTH), dict.fromkeys(BOTH))


class Found:
    """The points of all seeds, by workload and label."""

    def __init__(self, runs: Runs) -> None:
        self._seeds: list[dict[tuple[str, str], Compared]] = [
            {(one.workload, one.label): one for one in some} for some in runs.by_seed
        ]
        self.points: list[Compared] = list(runs.by_seed[0])

    def at(self, some: dict[tuple[str, str], Compared], one: Compared, tenth: int) -> Row:
        """That tenth of that point of a seed; one without messages if it has none."""
        rows = some[one.workload, one.label].rows
        return rows[tenth] if tenth < len(rows) else _NONE

    def over(self, one: Compared, value: Callable[[Compared], One]) -> Value:
        """A number of that point, over seeds."""
        return over_seeds(value(found[one.workload, one.label]) for found in self._seeds)

    def ratio(
        self, one: Compared, other: Compared, tenth: int, percentile: str, where: str = "lab"
    ) -> Value:
        """A percentile of one point's tenth over another's, seed by seed."""

        def of(found: dict[tuple[str, str], Compared]) -> One:
            a, b = (self.at(found, p, tenth) for p in (one, other))
            times = (getattr(row, where)[percentile] for row in (a, b))
            return divided(*times), min(_n(a, where), _n(b, where))

        return over_seeds(of(found) for found in self._seeds)

    def spread(self, some: Sequence[Compared]) -> Value:
        """Short messages' P99, the greatest over the least of these points, seed by seed."""

        def of(found: dict[tuple[str, str], Compared]) -> One:
            rows = [self.at(found, p, 0) for p in some]
            times = [row.lab["p99"] for row in rows]
            few = [row.count for row in rows if row.lab["p99"] is None]
            known = [t for t in times if t is not None]
            return (
                (None, min(few)) if few else (max(known) / min(known), min(r.count for r in rows))
            )

        return over_seeds(of(found) for found in self._seeds)

    def simulated(self, one: Compared) -> list[compare.Row]:
        """By how much the simulator is off, where it is most; of Homa it is judged."""
        rows = []
        for percentile in BOTH:
            tenths = [self._off(one, n, percentile) for n in range(len(one.rows))]
            what = f"{one.workload.upper()}, {one.label}, the tenth that differs most"
            judged = one.transport == "homa"
            rows.append(compared_with_simulated(what, percentile, worst(tenths, abs), judged))
        return rows

    def _off(self, one: Compared, tenth: int, percentile: str) -> Value:
        def of(found: dict[tuple[str, str], Compared]) -> One:
            row = self.at(found, one, tenth)
            return off(row.sim[percentile], row.lab[percentile]), min(row.count, row.sim_count)

        return over_seeds(of(found) for found in self._seeds)

    def slow(self, one: Compared, where: str) -> list[Value]:
        """Of each tenth how many percent took longer than SLOW_NS."""

        def of(found: dict[tuple[str, str], Compared], tenth: int) -> One:
            row = self.at(found, one, tenth)
            share = row.slow.get(where)
            return None if share is None else 100 * share, _n(row, where)

        return [
            over_seeds(of(found, tenth) for found in self._seeds) for tenth in range(len(one.rows))
        ]

    def slowdown(self, one: Compared) -> compare.Row:
        """Short messages' P99 slowdown."""

        def of(found: dict[tuple[str, str], Compared]) -> One:
            row = self.at(found, one, 0)
            return row.slowdown("lab", "p99"), row.count

        value = over_seeds(of(found) for found in self._seeds)
        what = f"{one.workload.upper()}, {one.label}: short messages, P99 slowdown"
        return compare.info(what, None, value)


def _n(row: Row, where: str) -> int:
    return row.count if where == "lab" else row.sim_count


def _pairs(found: Found) -> list[tuple[Compared, Compared]]:
    """Each point of another transport with Homa's of the same workload, load and all priorities."""
    homa = [one for one in found.points if one.transport == "homa"]
    pairs = []
    for other in found.points:
        if other.transport == "homa":
            continue
        same = [
            one
            for one in homa
            if (one.workload, one.load, one.levels) == (other.workload, other.load, other.levels)
        ]
        pairs += [(other, one) for one in same]
    return pairs


def _name(one: Compared) -> str:
    return f"{one.workload.upper()}, {TITLES[one.transport]} to Homa"


def fig3(runs: Runs) -> dict[str, Output]:
    """Homa and TCP."""
    found, theirs = Found(runs), published()["atc"]
    rows = []
    for other, homa in _pairs(found):
        known = theirs.get(other.transport)
        if known:
            paper = known[homa.workload][1] / theirs["homa"][homa.workload][1]
            what = f"{_name(other)}: short messages, P99"
            ours = found.ratio(other, homa, 0, "p99")
            rows.append(compare.at_least(what, paper, ours, goal=paper * PART))
            simulated = found.ratio(other, homa, 0, "p99", "sim")
            rows.append(compare.info(f"{what}, simulated", paper, simulated))
        for percentile in BOTH:
            tenths = [found.ratio(homa, other, n, percentile) for n in range(len(homa.rows))]
            what = (
                f"{homa.workload.upper()}, Homa to {TITLES[other.transport]}: {percentile.upper()}"
            )
            rows.append(goal(f"{what} of the tenth that is worst", worst(tenths), 1.0))
    return {"lab-fig3": _output("fig3", runs, found, rows)}


def fig5(runs: Runs) -> dict[str, Output]:
    """The number of priorities."""
    found, most = Found(runs), published()["goals"]["atc5_two_to_eight"]
    by = {one.levels: one for one in found.points if one.transport == "homa"}
    rows = [
        goal("W5, Homa, 2 levels to 8: short messages, P99", _to_eight(found, by, 2), most),
        *(
            compare.info(f"W5, Homa, {n} level{'s' if n > 1 else ''} to 8: short messages, P99", None,
                         _to_eight(found, by, n))
            for n in (1, 4)
        ),
    ]  # fmt: skip
    for other, homa in _pairs(found):
        what = f"{_name(other)} with 8 levels: short messages, P99"
        rows.append(compare.info(what, None, found.ratio(other, homa, 0, "p99")))
    return {"lab-fig5": _output("fig5", runs, found, rows)}


def _to_eight(found: Found, by: dict[int, Compared], levels: int) -> Value:
    return found.ratio(by[levels], by[8], 0, "p99")


def fig6(runs: Runs) -> dict[str, Output]:
    """The paper's load, half of it and a tenth."""
    found, paper = Found(runs), published()["atc6"]
    rows = []
    for transport in dict.fromkeys(one.transport for one in found.points):
        some = [one for one in found.points if one.transport == transport]
        value = found.spread(some) if len(some) == len(SHARES) else None
        what = f"W4, {TITLES[transport]}, three loads: short messages, P99, greatest to least"
        if transport == "homa":
            rows.append(compare.at_most(what, paper["homa_times"], value))
        else:
            rows.append(compare.info(what, None, value))
    for other, homa in _pairs(found):
        what = f"{other.label}, to Homa: short messages, P99"
        rows.append(compare.info(what, None, found.ratio(other, homa, 0, "p99")))
    return {"lab-fig6": _output("fig6", runs, found, rows)}


def small(runs: Runs) -> dict[str, Output]:
    """Homa as in Figure 3 with ports of a few packets: does the simulator say so, too?"""
    found = Found(runs)
    rows = [
        compare.info(
            f"{one.workload.upper()}, packets that ports drop, of a thousand RPCs", None, value
        )
        for one in found.points
        if (value := found.over(one, lambda p: (_drops_of(p, ""), int(p.facts["completed"]))))
    ]
    rows += [
        compare.info(f"{one.workload.upper()}, the same, simulated", None, value)
        for one in found.points
        if (value := found.over(one, lambda p: (_drops_of(p, "sim_"), int(p.facts["completed"]))))
    ]
    return {
        "lab-small": _output("fig3", runs, found, rows, "Homa with small buffers, on real packets")
    }


def _drops_of(one: Compared, where: str) -> float:
    """For each thousand RPCs."""
    return 1e3 * one.facts[f"{where}drops"] / max(1.0, one.facts["completed"])


def _output(
    name: str, runs: Runs, found: Found, rows: list[compare.Row], title: str = ""
) -> Output:
    for one in found.points:
        rows.append(found.slowdown(one))
    for one in found.points:
        rows += found.simulated(one)
    for one in found.points:
        if one.transport != "homa":
            rows += _slow(found, one)
    title = title or FIGURES[name].title + ", on real packets"

    paint = painted(lambda path: plot.paint(title, found.points, path))
    said = notes(runs, f"{runs.setup.hosts} hosts around one switch", runs.facts())
    said.append("Short messages: the shortest tenth.")
    said += [_drops(one) for one in found.points]
    said += [_slow_words(found, one) for one in found.points if one.transport != "homa"]
    if len(runs.seeds) > 1:
        said.append(f"The figure shows seed {runs.seeds[0]}.")
    missing = _missing(name, found)
    if missing:
        said.append(f"Not measured with short runs: {', '.join(missing)}.")
    records = [
        _record(seed, one, number, row)
        for seed, some in zip(runs.seeds, runs.by_seed, strict=True)
        for one in some
        for number, row in enumerate(one.rows, 1)
    ]
    values: dict[str, object] = {
        "points": [[one.as_json() for one in some] for some in runs.by_seed]
    }
    return Output(title, _COLUMNS, records, rows, paint, values, said)


def _slow(found: Found, one: Compared) -> list[compare.Row]:
    """TCP's P99 is that of a few messages, which wait for its least time-out or do not."""
    what = f"{one.workload.upper()}, {one.label}: slower than {SLOW_NS / 1e6:g} ms, of the tenth with most"
    return [
        compare.info(f"{what}{said}", None, worst(found.slow(one, where)), "%", 2)
        for where, said in (("lab", ""), ("sim", ", simulated"))
    ]


def _slow_words(found: Found, one: Compared) -> str:
    """The same of each tenth."""

    def words(where: str) -> str:
        shares = (tails.known(value) for value in found.slow(one, where))
        return ", ".join(format_percent(share.mean if share else None) for share in shares)

    return (
        f"{one.workload.upper()}, {one.label}: slower than {SLOW_NS / 1e6:g} ms were, from the shortest "
        f"tenth to the longest, {words('lab')} % (simulated {words('sim')})."
    )


def _missing(name: str, found: Found) -> list[str]:
    have = {one.workload for one in found.points}
    return [w.upper() for w in FIGURES[name].workloads if w not in have]


def _drops(one: Compared) -> str:
    facts = one.facts
    return (
        f"{one.workload.upper()}, {one.label}: {facts['completed']:,.0f} RPCs; packets dropped "
        f"{facts['drops']:,.0f} (simulated {facts['sim_drops']:,.0f}); longest queue "
        f"{facts['peak_queue'] / 1e3:,.0f} KB (simulated {facts['sim_peak_queue'] / 1e3:,.0f})."
    )


def _record(seed: int, one: Compared, number: int, row: Row) -> list[object]:
    times = [where[name] for where in (row.lab, row.sim) for name in BOTH]
    return [
        seed, one.workload, one.label, one.transport, one.load, one.levels, number, row.size_low,
        row.size_high, row.count, row.sim_count, *("" if t is None else t / 1e3 for t in times),
        *(("" if (v := row.slowdown(where, "p99")) is None else v) for where in ("lab", "sim")),
        *(("" if (v := row.slow.get(where)) is None else v) for where in ("lab", "sim")),
    ]  # fmt: skip
