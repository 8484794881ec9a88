# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa bench service` compares: homad as it comes, and the kernel's ways.

Nothing is pinned unless a case says so; homad runs in its default mode. A group's cases run one
after the other in every round. TCP and UNIX sockets never coalesce RPCs into one write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from lab.bench.configs import GOODPUT, LATENCY, RATE, TAIL, Metric

APPS = 64
_SAME, _CROSS = (0, 0), (0, 1)
SERVICE = ("--via", "service")
RING = "ring"  # no transport: this machine's bound, tests/counts/ring.c
RING_TITLE = "ring: next to nothing"
SHARE = Metric("share", "max/min\nshare", True)
CPU = Metric("cpu_percent", "% of a\ncore", True)
WAKEUPS = Metric("wakeups", "wake-ups\nper s", True)
PROCESSES = Metric("cpu", "% of a\ncore", True)
LIGHT = (
    LATENCY,
    TAIL,
    Metric("sent", "median\nas sent", True),
    Metric("late", "late by\nµs", True),
    PROCESSES,
    Metric("machine", "machine\n%", True),
    Metric("sleeps", "sleeps\nper RPC", True),
    Metric("switches", "switches\nper RPC", True),
    Metric("syscalls", "calls\nper RPC", True),
    Metric("samples", "RPCs", False),
)
LIGHT_RATES = (1_000, 10_000)


@dataclass(frozen=True)
class Group:
    """Cases that are compared; `mode` is homa-bench's, "" where homad is only watched."""

    key: str
    title: str
    mode: str
    metrics: tuple[Metric, ...]


@dataclass(frozen=True)
class Case:
    """One of them: what homa-bench is told on both sides, and where and beside what it runs.

    `cores` as in bench_configs.Config. `local`: client and server on one host. `sessions`: every
    process in a session of its own. `hog`: beside a process that never sleeps. `apps`: clients at
    once. `outstanding` overrides the mode's. `rate`: requests per second, at times that do not
    depend on the system (lab/bench/light.py).
    """

    key: str
    label: str
    group: str
    transport: str = "homa"
    options: tuple[str, ...] = SERVICE
    cores: tuple[int, int] | None = None
    local: bool = False
    sessions: bool = False
    hog: bool = False
    apps: int = 1
    outstanding: int = 0
    rate: int = 0


@dataclass(frozen=True)
class Ratio:
    """`metric` of case `over` to the best of cases `under` in the same round."""

    key: str
    text: str
    metric: Metric
    over: str
    under: tuple[str, ...]


GROUPS = (
    Group("rtt", "round trip of 100 B, one at a time", "rtt", (LATENCY, TAIL)),
    Group("rate", "100 B, 64 outstanding", "rate", (RATE,)),
    Group("sessions", "the same, every process in its own session", "rate", (RATE,)),
    Group("hog", "the same beside a process that never sleeps", "rate", (RATE,)),
    Group("goodput", "500 KB requests, 8 outstanding, offloads on", "goodput", (GOODPUT,)),
    Group("local", "100 B, 64 outstanding, both programs on one host", "rate", (RATE,)),
    Group("apps", "100 B, many applications at once", "rate", (RATE, SHARE)),
    *(
        Group(f"light{rate}", f"100 B, {rate:,} RPC/s, open loop", "light", LIGHT)
        for rate in LIGHT_RATES
    ),
    Group("idle", "homad without work", "", (CPU, WAKEUPS)),
)


def _tcp(
    key: str,
    label: str,
    group: str,
    options: tuple[str, ...],
    cores: tuple[int, int] | None = None,
    **more: bool,
) -> Case:
    return Case(key, f"TCP, {label}", group, "tcp", options, cores, **more)


def _rtt() -> list[Case]:
    return [
        _tcp("tcp_block", "blocking read, unpinned", "rtt", ("--wait", "block")),
        _tcp("tcp_block_same", "blocking read, same core", "rtt", ("--wait", "block"), _SAME),
        _tcp("tcp_yield_same", "yielding, same core", "rtt", ("--wait", "yield"), _SAME),
        _tcp("tcp_spin_cross", "spinning, two cores", "rtt", ("--wait", "spin"), _CROSS),
        Case("homad_rtt", "homad", "rtt"),
        Case("ring_rtt", RING_TITLE, "rtt", RING, (), outstanding=1),
    ]


def _rate() -> list[Case]:
    one, many = ("--connections", "1"), ("--connections", "16")
    cases = [
        _tcp("tcp_1_cross", "1 connection, two cores", "rate", one, _CROSS),
        _tcp("tcp_16_cross", "16 connections, two cores", "rate", many, _CROSS),
    ]
    for group, more in (("rate", {}), ("sessions", {"sessions": True}), ("hog", {"hog": True})):
        suffix = "" if group == "rate" else f"_{group}"
        cases += [
            _tcp(f"tcp_1{suffix}", "1 connection", group, one, **more),
            _tcp(f"tcp_16{suffix}", "16 connections", group, many, **more),
            Case(f"homad_rate{suffix}", "homad", group, **more),
            Case(f"ring_rate{suffix}", RING_TITLE, group, RING, (), outstanding=64, **more),
        ]
    return cases


def _others() -> list[Case]:
    def unix(key: str, label: str, kind: str, options: tuple[str, ...]) -> Case:
        return Case(key, label, "local", kind, options, local=True)

    return [
        _tcp("tcp_1_bulk", "1 connection", "goodput", ("--connections", "1")),
        _tcp("tcp_4_bulk", "4 connections", "goodput", ("--connections", "4")),
        Case("homad_bulk", "homad", "goodput"),
        unix("unix_1", "UNIX stream, 1 connection", "unix", ("--connections", "1")),
        unix("unix_16", "UNIX stream, 16 connections", "unix", ("--connections", "16")),
        unix("unix_packet", "UNIX packets", "unix-packet", ("--connections", "1")),
        unix("unix_block", "UNIX stream, blocking", "unix", ("--wait", "block")),
        Case("homad_local", "homad", "local", local=True),
        Case("homad_1_app", "1 application, 64 outstanding", "apps"),
        Case("homad_apps", f"{APPS} applications, 16 each", "apps", apps=APPS, outstanding=16),
        Case("homad_apps_4", f"{APPS} applications, 4 each", "apps", apps=APPS, outstanding=4),
        Case("homad_apps_1", f"{APPS} applications, 1 each", "apps", apps=APPS, outstanding=1),
        Case("homad_idle", "nothing attached", "idle", apps=0),
        Case("homad_idle_apps", "an application attached, quiet", "idle", apps=1),
    ]


def _light() -> list[Case]:
    """Each host of the protocol beside TCP, at each rate."""
    found = []
    for rate in LIGHT_RATES:
        group = f"light{rate}"
        found += [
            Case(f"tcp_{group}", "TCP, epoll", group, "tcp", ("--wait", "epoll"), rate=rate),
            Case(f"homad_{group}", "homad", group, rate=rate),
            Case(f"inside_{group}", "in process", group, "homa", ("--via", "afxdp"), rate=rate),
            Case(f"udp_{group}", "in process, UDP", group, "homa", ("--via", "udp"), rate=rate),
            Case(f"ring_{group}", RING_TITLE, group, RING, (), outstanding=64, rate=rate),
        ]
    return found


def _light_ratios() -> Iterator[Ratio]:
    names = {"homad": "homad", "inside": "in process", "udp": "in process over UDP"}
    for rate in LIGHT_RATES:
        for host, name in names.items():
            mine, tcp = f"{host}_light{rate}", (f"tcp_light{rate}",)
            text = f"{name} to TCP, {rate:,} RPC/s"
            yield Ratio(f"{mine}_median", f"median: {text}", LATENCY, mine, tcp)
            yield Ratio(f"{mine}_cpu", f"processor time: {text}", PROCESSES, mine, tcp)
        for name, metric in (("median", LATENCY), ("cpu", PROCESSES)):
            mine, ring, tcp = (f"{who}_light{rate}" for who in ("homad", "ring", "tcp"))
            what = "median" if name == "median" else "processor time"
            text = f"{what}: homad to the ring, {rate:,} RPC/s"
            yield Ratio(f"{mine}_{name}_to_ring", text, metric, mine, (ring,))
            text = f"{what}: the ring to TCP, {rate:,} RPC/s"
            yield Ratio(f"{ring}_{name}", text, metric, ring, (tcp,))


RATIOS = (
    *_light_ratios(),
    Ratio(
        "rtt_to_tcp_unpinned", "round trip to blocking TCP", LATENCY, "homad_rtt", ("tcp_block",)
    ),
    Ratio(
        "rtt_to_tcp_best",
        "round trip to the best placed TCP",
        LATENCY,
        "homad_rtt",
        ("tcp_block", "tcp_block_same", "tcp_yield_same", "tcp_spin_cross"),
    ),
    Ratio("rtt_to_ring", "round trip to the ring's", LATENCY, "homad_rtt", ("ring_rtt",)),
    Ratio("rate_to_ring", "rate to the ring's", RATE, "homad_rate", ("ring_rate",)),
    Ratio(
        "rate_to_tcp",
        "rate to TCP",
        RATE,
        "homad_rate",
        ("tcp_1", "tcp_16", "tcp_1_cross", "tcp_16_cross"),
    ),
    Ratio(
        "sessions_to_tcp",
        "rate to TCP, own sessions",
        RATE,
        "homad_rate_sessions",
        ("tcp_1_sessions", "tcp_16_sessions"),
    ),
    Ratio(
        "hog_to_tcp",
        "rate to TCP, beside a hog",
        RATE,
        "homad_rate_hog",
        ("tcp_1_hog", "tcp_16_hog"),
    ),
    *(
        Ratio(
            f"{group}_to_ring",
            f"rate to the ring's, {where}",
            RATE,
            f"homad_rate_{group}",
            (f"ring_rate_{group}",),
        )
        for group, where in (("sessions", "own sessions"), ("hog", "beside a hog"))
    ),
    Ratio("goodput_to_tcp", "goodput to TCP", GOODPUT, "homad_bulk", ("tcp_1_bulk", "tcp_4_bulk")),
    Ratio(
        "local_to_unix",
        "local rate to UNIX sockets",
        RATE,
        "homad_local",
        ("unix_1", "unix_16", "unix_packet", "unix_block"),
    ),
    Ratio(
        "apps_to_one", f"rate of {APPS} applications to one's", RATE, "homad_apps", ("homad_1_app",)
    ),
    Ratio("apps_4_to_one", "the same, 4 RPCs each", RATE, "homad_apps_4", ("homad_1_app",)),
    Ratio("apps_1_to_one", "the same, 1 RPC each", RATE, "homad_apps_1", ("homad_1_app",)),
)


def cases(groups: set[str]) -> list[Case]:
    """The cases of these groups that can run here, in the groups' order."""
    cores = len(os.sched_getaffinity(0))
    found = [
        case
        for case in (*_rtt(), *_rate(), *_others(), *_light())
        if case.group in groups and (case.cores is None or max(case.cores) < cores)
    ]
    order = [group.key for group in GROUPS]
    return sorted(found, key=lambda case: order.index(case.group))
