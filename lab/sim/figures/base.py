# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What all figures share: how long a run is, results by point and seed, files that come out.

A figure is a function: it asks a lab for the results of some specs and gives an Output, which is
written in the same way for all. `--quick` changes lengths and numbers only, never what is done.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab import provenance
from lab.errors import LabError
from lab.sim import compare, draw, tails
from lab.sim.compare import Row
from lab.sim.knee import Plan
from lab.sim.pool import Lab
from lab.sim.spec import Spec, merge, words
from lab.sim.stats import Stat, stat
from lab.sim.store import write
from lab.sim.sweep import pick
from lab.sim.tails import Few

WORKLOADS = ("w1", "w2", "w3", "w4", "w5")

# Simulated ms: what the oracle does before the run (--warm-start: the large messages of W3 to W5
# need that long until as many are under way as the load says), to warm up, to measure. Full: some
# 10,000 messages in each fiftieth of the sizes (W1 to W4); W5's largest alone takes 24 ms.
_FULL = {
    "w1": (0, 1, 20),
    "w2": (10, 2, 40),
    "w3": (100, 5, 80),
    "w4": (400, 20, 200),
    "w5": (800, 30, 400),
}
_QUICK = {
    "w1": (0, 0.3, 2),
    "w2": (5, 0.5, 5),
    "w3": (30, 1, 10),
    "w4": (150, 3, 20),
    "w5": (300, 5, 30),
}
# For the highest load, on three racks of the nine: the oracle's time, the protocol's own, and two
# windows of which the second is twice as long, together. The protocol's own is five ninths of the
# windows: its backlog begins as the oracle's, grows to its own level, and must not be watched while
# it does. With 60 ms for W4, as it was at first, Homa's still grew for 500 ms at 84 %.
_FULL_LIMIT = {
    "w1": (0, 17, 30),
    "w2": (20, 50, 90),
    "w3": (200, 250, 450),
    "w4": (600, 500, 900),
    "w5": (1000, 670, 1200),
}
_QUICK_LIMIT = {
    "w1": (0, 3, 9),
    "w2": (10, 8, 27),
    "w3": (60, 45, 135),
    "w4": (300, 120, 360),
    "w5": (500, 150, 450),
}
_LIMIT_RACKS = 3


@dataclass(frozen=True)
class Options:
    """What the command line says about a figure; `scale` multiplies simulated times.

    `guesses`: where searches for the highest load begin, by "homa.w4", if not at 80 %.
    """

    quick: bool = False
    seeds: int = 0
    headers: str = "sigcomm18"
    scale: float = 1.0
    protocols: tuple[str, ...] = ()
    guesses: dict[str, float] = field(default_factory=dict)

    def seed_list(self) -> list[int]:
        """1 to the number of seeds: three if quick, else five, unless told."""
        return list(range(1, (self.seeds or (3 if self.quick else 5)) + 1))

    def timing(self, workload: str) -> Spec:
        """Flags for the length of a run."""
        start, warmup, measure = (_QUICK if self.quick else _FULL)[workload]
        return self._times(start, warmup, measure, measure if self.quick else 2 * measure)

    def _times(self, start: float, warmup: float, measure: float, drain: float) -> Spec:
        flags = {"warmup": warmup, "measure": measure, "drain": drain, "warm-start": start}
        return {name: f"{ms * self.scale:.6g}ms" for name, ms in flags.items()}

    def limit(self, workload: str) -> Spec:
        """Flags for a run that shows whether a load is sustained (see lab.sim.sustain)."""
        flags = self._times(*(_QUICK_LIMIT if self.quick else _FULL_LIMIT)[workload], 0)
        return merge(flags, {"racks": _LIMIT_RACKS, "against-oracle": True})

    def limit_plan(self) -> Plan:
        """Which loads the search for the highest one may try."""
        return Plan(0.4, 1.0, 0.05, 0.1) if self.quick else Plan(0.4, 1.0, 0.01, 0.04)

    def limit_hosts(self) -> int:
        """Hosts in the network of such a run."""
        return 16 * _LIMIT_RACKS

    def chosen(self, protocols: Sequence[str]) -> list[str]:
        """`protocols` as far as the command line wants them."""
        return [p for p in protocols if not self.protocols or p in self.protocols]

    def words(self) -> str:
        """For subtitles."""
        count = len(self.seed_list())
        how = "short runs (--quick)" if self.quick else "full length"
        return f"{how}, {count} seed{'s' if count != 1 else ''}"


@dataclass
class Output:
    """What a figure computed: `records` for CSV, `rows` to compare, `paint` draws into a file."""

    title: str
    columns: list[str]
    records: list[list[object]]
    rows: list[Row]
    paint: Callable[[Path], list[Path]]
    values: dict[str, object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """A figure by its name; `compute` does the work.

    `rule` names the definition of its numbers; results of another rule do not stand beside them.
    `partial`: it can be made of the runs that are finished, and says what is not measured yet.
    """

    name: str
    title: str
    compute: Callable[[Lab, Options], Output]
    rule: str = "1"
    partial: bool = False


def sigcomm(workload: str, load: float, options: Options, **more: object) -> Spec:
    """A run in the network of SIGCOMM'18 with Homa unless `more` says otherwise."""
    base: Spec = {
        "protocol": "homa",
        "topology": "leaf-spine",
        "workload": workload,
        "load": round(load, 4),
        "headers": options.headers,
    }
    return merge(base, options.timing(workload), dict(more))


def _sound(lab: Lab, spec: Spec, result: dict | None) -> dict | None:
    """The result of a run; None, and a problem of the lab, if messages failed and no packet was lost: the
    transport gave them up for want of something else, and what others got is no measurement."""
    if result is None or "fail" in spec:
        return result
    counts = result.get("sim", {}).get("counts", {})
    lost = counts.get("packets_dropped", 0) + counts.get("window_lost", 0)
    failed = counts.get("messages_failed", 0)
    if not failed or lost:
        return result
    lab.problems.append(f"{words(spec)}: {failed:,} messages failed, although no packet was lost")
    return None


class Points:
    """Results of several points, each with several seeds, from one request to the lab."""

    def __init__(self, lab: Lab, options: Options, specs: dict[object, Spec]) -> None:
        seeds = options.seed_list()
        wanted = [merge(spec, {"seed": seed}) for spec in specs.values() for seed in seeds]
        found = [_sound(lab, *pair) for pair in zip(wanted, lab.results(wanted), strict=True)]
        self._found: dict[object, list[dict]] = {}
        for index, key in enumerate(specs):
            part = found[index * len(seeds) : (index + 1) * len(seeds)]
            # Of a point with missing runs nothing is said: fewer seeds were another sample.
            whole = not lab.only_finished or all(part)
            self._found[key] = [result for result in part if result] if whole else []

    def __getitem__(self, key: object) -> list[dict]:
        return self._found.get(key, [])

    def keys(self) -> list[object]:
        """Points that have at least one result."""
        return [key for key, results in self._found.items() if results]

    def stat(self, key: object, *place: str, scale: float = 1.0) -> Stat | None:
        """Mean over seeds of the number at `place`."""
        values = [pick(result, place) for result in self[key]]
        return stat(v * scale for v in values if v is not None)

    def tail(self, key: object, *place: str, percent: float = 99) -> Stat | Few | None:
        """A percentile of the slowdowns at `place`, of all seeds' messages together."""
        return tails.tail(tails.at(self[key], *place), percent)


def bins_of(results: list[dict]) -> list[dict]:
    """The size bins of `results`, seeds together, each percentile a Stat.

    Neighbours are joined until a bin has as many messages as a percentile needs (tails.LEAST);
    what is left at the end joins the last. Fewer messages in all: no bin.
    """
    rows: dict[float, list[dict]] = {}
    for result in results:
        for row in result.get("sim", {}).get("bins", []):
            if row.get("count"):
                rows.setdefault(round(row["from"], 6), []).append(row)
    groups: list[list[dict]] = [[]]
    for start in sorted(rows):
        if sum(row["count"] for row in groups[-1]) >= tails.LEAST:
            groups.append([])
        groups[-1] += rows[start]
    if len(groups) > 1 and sum(row["count"] for row in groups[-1]) < tails.LEAST:
        last = groups.pop()
        groups[-1] += last
    return [bin_ for group in groups if (bin_ := _joined(group, results)) is not None]


_PERCENTS = {"p50": 50, "p99": 99, "p999": 99.9}


def _joined(group: list[dict], results: list[dict]) -> dict | None:
    if sum(row["count"] for row in group) < tails.LEAST:
        return None
    first, last = min(r["from"] for r in group), max(r["to"] for r in group)
    seeds = tails.bins(results, last, first)
    return {
        "from": first,
        "to": last,
        "min_bytes": min(r["min_bytes"] for r in group),
        "max_bytes": max(r["max_bytes"] for r in group),
        "count": sum(r["count"] for r in group),
        **{name: tails.known(tails.tail(seeds, p)) for name, p in _PERCENTS.items()},
    }


def middle(row: dict) -> float:
    """Where a bin is drawn."""
    return (row["from"] + row["to"]) / 2


def means(bins: list[dict], percentile: str) -> list[float | None]:
    """One percentile of every bin."""
    return [row[percentile].mean if row[percentile] else None for row in bins]


def network_words(options: Options, hosts: int = 144) -> str:
    """For subtitles of SIGCOMM figures."""
    return f"{hosts} hosts at 10 Gbit/s, leaf-spine; {options.headers} headers; {options.words()}"


def cell(value: Stat | Few | None) -> list[object]:
    """Mean and interval for a CSV row; empty if there is none or of too few messages."""
    if not isinstance(value, Stat):
        return ["", ""]
    return [f"{value.mean:.6g}", "" if value.half is None else f"{value.half:.6g}"]


def deliver(figure: Figure, output: Output, options: Options, folder: Path) -> list[Path]:
    """Write all files of a figure into `folder`."""
    stem = folder / figure.name
    files = [stem.with_name(stem.name + suffix) for suffix in (".csv", ".json", ".md")]
    try:
        with files[0].open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(output.columns)
            writer.writerows(output.records)
        files[2].write_text(markdown(figure, output, options))
    except OSError as error:
        raise LabError(f"cannot write {files[0]}: {error.strerror}; give another --out") from None
    write(files[1], document(figure, output, options))
    return [*files, *output.paint(stem)]


def document(figure: Figure, output: Output, options: Options) -> dict[str, object]:
    """The figure as JSON: what was compared and every number drawn."""
    judged = [row for row in output.rows if row.met is not None]
    return {
        "figure": figure.name,
        "rule": figure.rule,
        "title": output.title,
        "quick": options.quick,
        "seeds": len(options.seed_list()),
        "seed_list": options.seed_list(),
        "where": provenance.here(),
        "headers": options.headers,
        "values": output.values,
        "rows": [row.as_json() for row in output.rows],
        "met": sum(row.met is True for row in judged),
        "missed": sum(row.met is False for row in judged),
        "notes": output.notes,
        "data": [dict(zip(output.columns, record, strict=True)) for record in output.records],
    }


def markdown(figure: Figure, output: Output, options: Options) -> str:
    """The comparison as a page."""
    text = f"# {output.title}\n\n{options.words()}; ± is a 95 % confidence interval. "
    text += f"n: messages behind a percentile; of fewer than {tails.LEAST:,} none is given.\n\n"
    if output.rows:
        text += compare.as_markdown(output.rows) + "\n"
    text += "".join(f"* {note}\n" for note in output.notes)
    return text + f"\n![{figure.title}]({figure.name}.png)\n"


def median(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return statistics.median(values) if values else None


def finish(figure, stem: Path) -> list[Path]:  # noqa: ANN001 (matplotlib is imported late)
    """Save into both formats."""
    return draw.save(figure, stem)
