# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What came out of a run in which something failed, by who was concerned.

RPCs between two hosts that nothing happened to are *others*; RPCs that one of these hosts sent to
the victim are *concerned*. What the victim itself sent is neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from lab.bench import results
from lab.bench.histogram import Histogram, merge
from lab.cluster import nodes
from lab.cluster.real_and_simulated import percentiles
from lab.coexist.shares import SHORT_TENTHS
from lab.errors import LabError
from lab.failures.faults import Cell
from lab.sim.tails import histogram


@dataclass(frozen=True)
class Fates:
    """How RPCs ended: how many with a response, the longest of these and its seconds; how many
    failed, how (errors by name), and the ages at which the first and the last did, seconds."""

    completed: int
    failed: int
    errors: dict[str, int] = field(default_factory=dict)
    longest: float | None = None
    error_first: float | None = None
    error_last: float | None = None


@dataclass(frozen=True)
class Others:
    """RPCs between other hosts, ns: of the smallest 20 % and of all; None of too few. `wrong` counts
    messages whose bytes were wrong, of all hosts."""

    count: int
    failed: int
    short_count: int
    short: dict[str, float | None]
    all: dict[str, float | None]
    errors: dict[str, int] = field(default_factory=dict)
    wrong: int = 0


@dataclass(frozen=True)
class Measured:
    """One cell, in the lab and simulated; `doubts` say why it does not count."""

    cell: Cell
    others: Others
    concerned: Fates
    sim_others: Others
    sim_concerned: Fates
    facts: dict[str, float] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """For a file; from_json() reads it."""
        return {**asdict(self), "counts": not self.doubts}


def from_json(document: dict) -> Measured:
    """What as_json() gave."""
    return Measured(
        Cell(**document["cell"]),
        Others(**document["others"]),
        Fates(**document["concerned"]),
        Others(**document["sim_others"]),
        Fates(**document["sim_concerned"]),
        document["facts"],
        document["doubts"],
    )


def concerned(found: Sequence[dict]) -> Fates:
    """The RPCs of these hosts with the victim, by their homa-bench's `apart`."""
    try:
        rows = [data["apart"] for data in found]
        errors: Counter[str] = Counter()
        for row in rows:
            errors.update({name: int(n) for name, n in row["errors"].items()})
        ends = merge(histogram(row["error_ns"]) for row in rows)
        longest = max(float(row["latency_ns"].get("max", 0)) for row in rows)
        completed = sum(int(row["completed"]) for row in rows)
        failed = sum(int(row["failed"]) for row in rows)
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(
            f"homa-bench's result lacks or damages {error}; rebuild with ./homa build"
        ) from None
    return Fates(completed, failed, dict(errors), longest / 1e9, *_ends(ends))


def _ends(ages: Histogram) -> tuple[float | None, float | None]:
    return (ages.low / 1e9, ages.high / 1e9) if ages.count else (None, None)


def others(found: Sequence[dict], everybody: Sequence[dict | None]) -> Others:
    """The RPCs of the hosts `found` with each other; `everybody` also has the victim's result."""
    parsed = [results.parse_load(data) for data in found]
    tenths = nodes.together(parsed)
    short = merge(one.latency for one in tenths[:SHORT_TENTHS])
    whole = merge(one.latency for one in tenths)
    errors: Counter[str] = Counter()
    for data in found:
        errors.update({name: int(n) for name, n in data["errors"].items()})
    wrong = sum(int(d["transport"].get("protocol_errors", 0)) for d in everybody if d)
    wrong += errors["EBADMSG"] + sum(d["apart"]["errors"].get("EBADMSG", 0) for d in found)
    failed = sum(one.failed for one in parsed)
    return Others(
        whole.count,
        failed,
        short.count,
        percentiles(short),
        percentiles(whole),
        dict(errors),
        wrong,
    )


def simulated(data: dict) -> tuple[Others, Fates]:
    """The same of homa-sim's result; there the victim's own RPCs are among those concerned."""
    rows = data.get("deciles") or []
    shapes = [histogram(row.get("latency_ns")) for row in rows]
    short, whole = merge(shapes[:SHORT_TENTHS]), merge(shapes)
    failed = sum(int(row.get("failed", 0)) for row in rows)
    apart = data.get("sim", {}).get("apart", {})
    done, ended = apart.get("latency_ns", {}), apart.get("error_ns", {})
    fates = Fates(
        int(done.get("count", 0)),
        int(ended.get("count", 0)),
        {},
        float(done["max"]) / 1e9 if done.get("count") else None,
        float(ended["min"]) / 1e9 if ended.get("count") else None,
        float(ended["max"]) / 1e9 if ended.get("count") else None,
    )
    return (
        Others(whole.count, failed, short.count, percentiles(short), percentiles(whole)),
        fates,
    )
