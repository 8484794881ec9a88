# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The JSON of `homa-bench` as typed values, and the results of several hosts as one.

`bench/schema.json` describes the files. Only what the laboratory uses is read; a missing or
damaged part is a LabError that names it, because it means that lab and homa-bench disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.errors import LabError
from lab.bench.histogram import Histogram, merge
from lab.demo.report import Run, SizeRow
from lab.units import format_us

SCHEMA = "homa-bench/1"
SLOWDOWN_SCALE = 1000  # slowdown histograms hold thousandths


@dataclass(frozen=True)
class SizeClass:
    """RPCs of one tenth of the sizes (or all): `latency` in ns, `slowdown` in thousandths."""

    size_min: int
    size_max: int
    failed: int
    latency: Histogram
    slowdown: Histogram


@dataclass(frozen=True)
class BenchResult:
    """One run of homa-bench as client or node; bytes and seconds of the measured window."""

    transport: str
    classes: list[SizeClass]
    completed: int
    failed: int
    unfinished: int
    goodput_bps: float
    offered_load: float
    wire_load: float
    rps: float
    cpu_s: float
    machine_busy_s: float
    window_s: float
    retransmits: int | None
    lag_p99_ns: float
    limited: bool
    details: dict = field(default_factory=dict)
    lag_p50_ns: float = 0.0
    lag: Histogram = field(default_factory=Histogram)
    start_late_s: float = 0.0
    from_send_p50_ns: float = 0.0
    machine_total_s: float = 0.0


@dataclass(frozen=True)
class Unloaded:
    """Round trips of one size on an idle network."""

    size: int
    count: int
    p50_ns: float
    p99_ns: float


def _reader(data: object) -> dict:
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise LabError(f"homa-bench wrote no {SCHEMA} result; rebuild everything with ./homa build")
    if not data.get("complete", False):
        raise LabError(f"homa-bench did not finish: {data.get('ended_by', 'interrupted')}")
    return data


def _damaged(read: Callable[[dict], object], data: object) -> object:
    checked = _reader(data)
    try:
        return read(checked)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise LabError(
            f"homa-bench's result lacks or damages {error}; rebuild with ./homa build"
        ) from None


def parse_unloaded(data: object) -> list[Unloaded]:
    """The round-trip times of `homa-bench client --unloaded`."""
    return _damaged(
        lambda d: [
            Unloaded(r["size"], r["count"], float(r["p50_ns"]), float(r["p99_ns"]))
            for r in d["unloaded"]
        ],
        data,
    )  # type: ignore[return-value]


def parse_load(data: object) -> BenchResult:
    """The result of `homa-bench client` or `node` under load."""
    return _damaged(_load, data)  # type: ignore[return-value]


def _load(data: dict) -> BenchResult:
    rpcs, throughput, cpu = data["rpcs"], data["throughput"], data["cpu"]
    generator = data.get("generator", {})
    if data["deciles"]:
        classes = [
            _size_class(row, row["size_min"], row["size_max"], row["failed"])
            for row in data["deciles"]
        ]
    else:
        size = int(float(data["config"]["mean_bytes"]))
        classes = [_size_class(data, size, size, rpcs["failed"])]
    return BenchResult(
        transport=data["config"]["transport"],
        classes=classes,
        completed=int(rpcs["completed"]),
        failed=int(rpcs["failed"]),
        unfinished=int(rpcs["unfinished"]),
        goodput_bps=float(throughput["goodput_gbps"]) * 1e9,
        offered_load=float(throughput.get("offered_load", 0)),
        wire_load=float(throughput.get("achieved_load", 0)),
        rps=float(throughput["rps"]),
        cpu_s=float(cpu["user_s"]) + float(cpu["system_s"]),
        machine_busy_s=float(cpu["machine_busy_s"]),
        window_s=float(data["time"]["window_s"]),
        retransmits=data["retransmits"],
        lag_p99_ns=float(generator.get("lag_ns", {}).get("p99", 0)),
        limited=bool(generator.get("limited", False)),
        details=data["transport"],
        lag_p50_ns=float(generator.get("lag_ns", {}).get("p50", 0)),
        lag=_histogram(generator["lag_ns"])
        if "histogram" in generator.get("lag_ns", {})
        else Histogram(),
        start_late_s=float(data["time"].get("start_late_s", 0)),
        from_send_p50_ns=float(generator.get("from_send_ns", {}).get("p50", 0)),
        machine_total_s=float(cpu.get("machine_total_s", 0)),
    )


def _size_class(row: dict, low: int, high: int, failed: int) -> SizeClass:
    latency, slowdown = row["latency_ns"], row.get("slowdown", {})
    return SizeClass(
        int(low),
        int(high),
        int(failed),
        _histogram(latency),
        _histogram(slowdown) if slowdown else Histogram(),
    )


def _histogram(summary: dict) -> Histogram:
    if not summary["count"]:
        return Histogram()
    return Histogram.from_json(summary["histogram"])


def best_unloaded(measured: Sequence[Sequence[Unloaded]]) -> list[dict[str, float]]:
    """The slowdown denominators: per size the best unloaded median of any transport.

    In the form that homa-bench --denominators reads (sizes increase). A median that is above
    that of a longer message is noise, so it is brought down to it.
    """
    best: dict[int, float] = {}
    for rows in measured:
        for row in rows:
            best[row.size] = min(row.p50_ns, best.get(row.size, row.p50_ns))
    sizes = sorted(best)
    for shorter, longer in reversed(list(zip(sizes, sizes[1:], strict=False))):
        best[shorter] = min(best[shorter], best[longer])
    return [{"size": size, "p50_ns": best[size]} for size in sizes]


def combine(transport: str, buffer: int, nodes: Sequence[BenchResult]) -> Run:
    """One run of the demo from the results of its hosts; the switch's share is added later."""
    rows = [_row([node.classes[index] for node in nodes]) for index in range(len(nodes[0].classes))]
    everything = _row([one for node in nodes for one in node.classes])
    return Run(
        transport=transport,
        buffer=buffer,
        rows=rows,
        overall=everything,
        goodput_bps=sum(node.goodput_bps for node in nodes),
        offered_load=sum(node.offered_load for node in nodes) / len(nodes),
        wire_load=sum(node.wire_load for node in nodes) / len(nodes),
        completed=sum(node.completed for node in nodes),
        unfinished=sum(node.unfinished for node in nodes),
        failed=sum(node.failed for node in nodes),
        cpu_s=max(node.machine_busy_s for node in nodes),
        via=str(nodes[0].details.get("via", "")),
        notes=_notes(nodes),
    )


def _notes(nodes: Sequence[BenchResult]) -> list[str]:
    late = max(node.lag_p99_ns for node in nodes)
    if not any(node.limited for node in nodes):
        return []
    return [
        f"requests left up to {format_us(late / 1e3)} late (P99) for want of processor time; "
        "latencies include that"
    ]


def _row(classes: Sequence[SizeClass]) -> SizeRow:
    latency = merge(one.latency for one in classes)
    slowdown = merge(one.slowdown for one in classes)
    return SizeRow(
        size_low=min(one.size_min for one in classes),
        size_high=max(one.size_max for one in classes),
        count=latency.count,
        p50_us=_scaled(latency.percentile(50), 1000),
        p99_us=_scaled(latency.percentile(99), 1000),
        slowdown_p50=_scaled(slowdown.percentile(50), SLOWDOWN_SCALE),
        slowdown_p99=_scaled(slowdown.percentile(99), SLOWDOWN_SCALE),
    )


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value / scale
