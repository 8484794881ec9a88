# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the demo found, apart from how it is measured and how it is shown.

A `Report` holds one `Run` per transport and buffer size. Tables, figure and JSON are made
from it alone, so a saved one can be shown again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

HOMA = "homa"
LABELS = {
    "homa": "Homa",
    "tcp-pool": "TCP pool",
    "tcp": "TCP stream",
    "udp": "raw UDP",
}
EXPLAINED = {
    "homa": "this project's engine inside the program",
    "homa-kernel": "this project's module homa.ko in the kernel of a virtual machine",
    "homa-service": "this project's daemon homad on each host",
    "tcp-pool": "kernel TCP, an idle connection for every RPC",
    "tcp": "kernel TCP, one stream per peer shared by all RPCs",
    "udp": "datagrams without a transport protocol",
}


@dataclass(frozen=True)
class SizeRow:
    """One tenth of the messages by size: sizes in bytes, times in µs, slowdown dimensionless."""

    size_low: int
    size_high: int
    count: int
    p50_us: float | None
    p99_us: float | None
    slowdown_p50: float | None
    slowdown_p99: float | None


@dataclass(frozen=True)
class Run:
    """One transport at one buffer size; `drops` and `peak_backlog` (bytes in
    one port, None: unknown) are the switch's."""

    transport: str
    buffer: int
    rows: list[SizeRow]
    overall: SizeRow
    goodput_bps: float
    offered_load: float
    wire_load: float
    completed: int
    unfinished: int
    failed: int
    cpu_s: float
    drops: int = 0
    peak_backlog: int | None = None
    via: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass
class Report:
    """The whole demo: its settings, the machine, the network and every run."""

    settings: dict[str, object]
    machine: dict[str, object]
    network: dict[str, object]
    runs: list[Run]

    def buffers(self) -> list[int]:
        """Buffer sizes in the order of measurement."""
        return list(dict.fromkeys(run.buffer for run in self.runs))

    def transports(self) -> list[str]:
        """Transports in the order of measurement."""
        return list(dict.fromkeys(run.transport for run in self.runs))

    def run(self, transport: str, buffer: int) -> Run | None:
        """The run of `transport` at `buffer` bytes, if there is one."""
        return next((r for r in self.runs if (r.transport, r.buffer) == (transport, buffer)), None)

    def ratios(self, transport: str, buffer: int, value: str = "p99_us") -> list[float | None]:
        """P99 (or another `value`) of `transport` over Homa's, for each tenth of the messages."""
        homa, other = self.run(HOMA, buffer), self.run(transport, buffer)
        if not homa or not other:
            return []
        return [
            ratio(getattr(o, value), getattr(h, value))
            for h, o in zip(homa.rows, other.rows, strict=True)
        ]

    def summary(self) -> dict[str, object]:
        """What the scoreboard asks for, with the smaller (usual) buffer."""
        if not self.runs:
            return {}
        first = self.buffers()[0]
        ratios = {t: self.ratios(t, first) for t in self.transports() if t != HOMA}
        known = [r for row in ratios.values() for r in row if r is not None]
        return {
            "buffer_bytes": first,
            "smallest_decile_p99_ratio": {t: row[0] for t, row in ratios.items() if row},
            "worst_decile_p99_ratio": min(known) if known else None,
        }

    def as_json(self) -> dict[str, object]:
        """The report as a document (docs/demo.md describes it)."""
        return {
            "what": "demo",
            "settings": self.settings,
            "machine": self.machine,
            "network": self.network,
            "runs": [asdict(run) for run in self.runs],
            "ratios": [
                {
                    "transport": t,
                    "buffer": b,
                    "p99_to_homa": self.ratios(t, b),
                    "slowdown_p99_to_homa": self.ratios(t, b, "slowdown_p99"),
                }
                for b in self.buffers()
                for t in self.transports()
                if t != HOMA
            ],
            "summary": self.summary(),
        }


def ratio(a: float | None, b: float | None) -> float | None:
    """a / b, None where that says nothing."""
    return a / b if a is not None and b else None


def from_json(document: dict) -> Report:
    """The report in a file written by as_json()."""
    runs = []
    for run in document["runs"]:
        rows = [SizeRow(**row) for row in run["rows"]]
        runs.append(Run(**{**run, "rows": rows, "overall": SizeRow(**run["overall"])}))
    return Report(document["settings"], document["machine"], document["network"], runs)
