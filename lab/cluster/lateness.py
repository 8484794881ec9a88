# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Whether the load generators of a run sent their requests in time.

Latency counts from when a request was due, so a late generator makes what it measures look slower.
All hosts are judged together: the few hundred requests that one has are too few for a P99.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.bench.histogram import merge
from lab.bench.results import BenchResult

FLOOR_NS = 100e3  # that requests may be late in any case, at P99
PART = 0.1  # of the P99 of the shortest tenth of the messages, that they may be late


def facts_of(hosts: Sequence[BenchResult]) -> dict[str, float]:
    """How late requests left, ns, and what they may be; how late the last host began, s."""
    if not hosts:
        return {}
    late = merge(host.lag for host in hosts)
    # Of a host without a histogram only its own P99 is known.
    alone = [host.lag_p99_ns for host in hosts if not host.lag.count]
    short = merge(host.classes[0].latency for host in hosts).percentile(99.0) or 0.0
    return {
        "late_p99_ns": max(float(late.percentile(99.0) or 0.0), *alone, 0.0),
        "late_max_ns": float(late.high),
        "late_limit_ns": max(FLOOR_NS, short * PART),
        "start_late_s": max(host.start_late_s for host in hosts),
    }


def doubts(facts: dict[str, float]) -> list[str]:
    """Why a run with these facts does not count, if that is because of its generators."""
    found = []
    if facts.get("late_p99_ns", 0.0) > facts.get("late_limit_ns", float("inf")):
        found.append(
            f"the generators were late, P99 {facts['late_p99_ns'] / 1e3:,.0f} µs, more than "
            f"{facts['late_limit_ns'] / 1e3:,.0f}"
        )
    if facts.get("start_late_s", 0.0) > 0.01 * facts.get("window_s", float("inf")):
        found.append(f"a host began {facts['start_late_s']:.2f} s late")
    return found
