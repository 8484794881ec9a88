# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What happened between two snapshots, per second: the numbers of `./homa top`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from tools.connection import Json


@dataclass(frozen=True)
class Latency:
    """Of the RPCs that ended in between, ns; None: there were none."""

    count: int = 0
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Thread:
    """`cpu`, `busy`: shares of one core, 0 to 1. The rest per second."""

    thread: int
    core: int
    active: bool
    asleep: bool
    attachments: int
    cpu: float
    busy: float
    rounds: float
    commands: float
    completions: float
    wakeups: float
    kicks: float
    sleeps: float
    direct: float
    spin_ns: int


@dataclass(frozen=True)
class Port:
    """Packets and bytes per second; messages being sent, granted to, waiting for grants now."""

    name: str
    backend: str
    rx_packets: float
    rx_bytes: float
    tx_packets: float
    tx_bytes: float
    lost: float
    sending: int
    granting: int
    waiting: int
    backlog_ns: int
    rtt_ns: int


@dataclass(frozen=True)
class App:
    """Per second; `rpcs`, `submitted`, `completed`: now (RPCs open, entries in its rings)."""

    app: int
    name: str
    pid: int
    port: int
    rpcs: int
    submitted: int
    completed: int
    requests: float
    replies: float
    delivered: float
    rx_bytes: float
    tx_bytes: float
    refused: float
    wakeups: float
    streams: int = 0
    stream_rx_bytes: float = 0
    stream_tx_bytes: float = 0


@dataclass(frozen=True)
class Tcp:
    """What homad carries of TCP. `connections`, `time_wait`: now; the rest per second; `dropped`:
    segments that homad refused, whatever the reason."""

    connections: int
    time_wait: int
    opened: float
    failed: float
    segments_in: float
    segments_out: float
    bytes_out: float
    resent: float
    timeouts: float
    dropped: float


@dataclass(frozen=True)
class Socket:
    """Of the kernel's module, now: open RPCs, bytes to send, free and all receive buffers."""

    socket: int
    name: str
    pid: int
    port: int
    server: bool
    rpcs: int
    tx_bytes: int
    avail_bytes: int
    region_bytes: int
    starved: bool


@dataclass(frozen=True)
class Rates:
    """The whole picture. `engine`: its counters per second."""

    seconds: float
    homad: Json
    latency: Latency
    engine: dict[str, float]
    threads: list[Thread] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    apps: list[App] = field(default_factory=list)
    sockets: list[Socket] = field(default_factory=list)
    tcp: Tcp | None = None

    @property
    def kernel(self) -> str:
        """The kernel's release if it is its module that was looked at, else nothing."""
        return str(self.homad.get("kernel", ""))

    def as_json(self) -> Json:
        """For programs."""
        return asdict(self)


def between(before: Json, after: Json) -> Rates:
    """The rates from one snapshot to the next; both of one daemon."""
    seconds = max(1e-6, (int(after["time_ns"]) - int(before["time_ns"])) / 1e9)
    old_threads = {t["thread"]: t for t in before["threads"]}
    old_ports = {p["name"]: p for p in before["ports"]}
    old_apps = {a["app"]: a for a in before["apps"]}
    in_kernel = "kernel" in after["homad"]
    return Rates(
        seconds,
        after["homad"],
        latency(before["latency"], after["latency"]),
        per_second(before["engine"], after["engine"], seconds),
        [_thread(old_threads.get(t["thread"], t), t, seconds) for t in after["threads"]],
        [_port(old_ports.get(p["name"], p), p, seconds) for p in after["ports"]],
        [_app(old_apps.get(a["app"]), a, seconds) for a in after["apps"] if not in_kernel],
        [_socket(a) for a in after["apps"] if in_kernel],
        _tcp(before["tcp"], after["tcp"], seconds) if "tcp" in before and "tcp" in after else None,
    )


def per_second(
    before: Mapping[str, int], after: Mapping[str, int], seconds: float
) -> dict[str, float]:
    """Differences of counters; one that is new counts from 0."""
    return {name: (value - before.get(name, 0)) / seconds for name, value in after.items()}


def latency(before: Json, after: Json) -> Latency:
    """Percentiles of the values that came in between."""
    old = dict(zip(before["values"], before["counts"], strict=True))
    fresh = [
        (value, count - old.get(value, 0))
        for value, count in zip(after["values"], after["counts"], strict=True)
        if count > old.get(value, 0)
    ]
    total = sum(count for _, count in fresh)
    if not total:
        return Latency()

    def percentile(percent: float) -> float:
        rank = max(1, math.ceil(total * percent / 100 - 1e-9))
        seen = 0
        for value, count in fresh:
            seen += count
            if seen >= rank:
                return float(value)
        return float(fresh[-1][0])

    mean = sum(value * count for value, count in fresh) / total
    return Latency(
        total, mean, percentile(50), percentile(90), percentile(99), percentile(99.9), fresh[-1][0]
    )


def _thread(before: Json, after: Json, seconds: float) -> Thread:
    rate = per_second(before["counters"], after["counters"], seconds)
    return Thread(
        after["thread"], after["core"], after["active"], after["asleep"], after["attachments"],
        (after["cpu_ns"] - before["cpu_ns"]) / seconds / 1e9, rate["busy_ns"] / 1e9,
        rate["rounds"], rate["commands"], rate["completions"], rate["wakeups"], rate["kicks"],
        rate["blocks"], rate.get("direct", 0), after["spin_ns"],
    )  # fmt: skip


def _port(before: Json, after: Json, seconds: float) -> Port:
    rate = per_second(before.get("nic", {}), after.get("nic", {}), seconds)
    link = after["link"]
    lost = sum(rate.get(f"nic_{n}", 0) for n in ("rx_dropped", "tx_errors", "rx_malformed"))
    return Port(
        after["name"], after["backend"], rate.get("nic_rx_packets", 0), rate.get("nic_rx_bytes", 0),
        rate.get("nic_tx_packets", 0), rate.get("nic_tx_bytes", 0), lost,
        link["sending"], link["granting"], link["waiting"], link["backlog_ns"],
        link["rtt_us"] * 1000,
    )  # fmt: skip


def _app(before: Json | None, after: Json, seconds: float) -> App:
    rate = per_second(before["counters"] if before else {}, after["counters"], seconds)
    return App(
        after["app"], after["name"], after["pid"], after["port"], after["rpcs"],
        after.get("submitted", 0), after.get("completed", 0), rate["requests"], rate["replies"],
        rate["delivered"], rate["rx_bytes"], rate["tx_bytes"], rate["refused"], rate["wakeups"],
        after.get("streams", 0),
        _grown(before, after, "stream_rx_bytes") / seconds,
        _grown(before, after, "stream_tx_bytes") / seconds,
    )  # fmt: skip


def _grown(before: Json | None, after: Json, name: str) -> float:
    return float(after.get(name, 0) - (before or {}).get(name, 0))


_DROPS = (
    "slow_drops", "out_of_order_drops", "outside_window", "paws_drops", "syn_drops", "cookies_bad",
)  # fmt: skip


def _tcp(before: Json, after: Json, seconds: float) -> Tcp:
    rate = per_second(before["engine"], after["engine"], seconds)
    host = per_second(before["host"], after["host"], seconds)
    return Tcp(
        after["connections"], after["time_wait"], rate["opened_active"] + rate["opened_passive"],
        rate["open_failures"] + host["connects_refused"],
        rate["usual_segments"] + rate["fast_segments"] + rate["slow_segments"],
        rate["data_sent"] + rate["acks_sent"],
        rate["data_bytes"], rate["retransmits"], rate["timeouts"],
        sum(rate.get(name, 0) for name in _DROPS) + host["malformed"] + host["no_place"],
    )  # fmt: skip


def _socket(sock: Json) -> Socket:
    return Socket(
        sock["app"], sock["name"], sock["pid"], sock.get("port", 0), bool(sock.get("server")),
        sock["rpcs"], sock.get("tx_bytes", 0), sock.get("avail_bytes", 0),
        sock.get("region_bytes", 0), bool(sock.get("starved")),
    )  # fmt: skip
