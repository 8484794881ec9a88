# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What `./homa bench` compares: every sensible way to run TCP, and Homa's.

Which placement and which way of waiting is best for TCP depends on the machine, so all of them
run and Homa is compared with the best. TCP never coalesces several RPCs into one write.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """One configuration: options for homa-bench on both sides, and where the two run.

    `cores` is the client's and the server's core number (0 and 1 of those we may use), or None
    where the scheduler decides. `offloads` chooses the pair of hosts. `group` joins what is
    compared: Homa's ratio is to the best TCP of its group.
    """

    key: str
    label: str
    transport: str
    options: tuple[str, ...] = ()
    cores: tuple[int, int] | None = None
    offloads: bool = False
    group: str = ""


@dataclass(frozen=True)
class Metric:
    """A value: its `name` in the JSON, its column, shown divided by `scale`; is less better?"""

    name: str
    title: str
    lower: bool
    scale: float = 1.0


LATENCY = Metric("median", "median\nµs", True)
TAIL = Metric("p99", "P99\nµs", True)
RATE = Metric("rate", "1000\nRPC/s", False, 1e3)
PER_CPU = Metric("per_cpu_second", "per\nCPU-s", False, 1e3)
GOODPUT = Metric("goodput", "goodput\nGbit/s", False, 1e9)
CPU_TIME = Metric("cpu_us", "CPU µs\nper RPC", True)

METRICS = {
    "rtt": (LATENCY, TAIL, CPU_TIME),
    "rate": (RATE, PER_CPU, CPU_TIME),
    "goodput": (GOODPUT, CPU_TIME),
}
TITLES = {
    "rtt": "round trip of 100 B requests and responses, one at a time",
    "rate": "100 B requests and responses, 64 outstanding",
    "goodput": "500 KB requests, 8 outstanding, MTU 1500",
}

_SAME, _CROSS = (0, 0), (0, 1)


def _rtt() -> list[Config]:
    return [
        Config(
            "tcp_block_same", "TCP, blocking read, same core", "tcp", ("--wait", "block"), _SAME
        ),
        Config("tcp_yield_same", "TCP, yielding, same core", "tcp", ("--wait", "yield"), _SAME),
        Config(
            "tcp_block_cross", "TCP, blocking read, two cores", "tcp", ("--wait", "block"), _CROSS
        ),
        Config("tcp_spin_cross", "TCP, spinning, two cores", "tcp", ("--wait", "spin"), _CROSS),
        Config("tcp_epoll", "TCP, epoll, unpinned", "tcp", ("--wait", "epoll")),
        Config(
            "homa_afxdp_spin",
            "Homa, AF_XDP, spinning, two cores",
            "homa",
            ("--via", "afxdp", "--spin"),
            _CROSS,
        ),
        Config(
            "homa_afxdp_yield",
            "Homa, AF_XDP, yielding, same core",
            "homa",
            ("--via", "afxdp", "--wait", "yield"),
            _SAME,
        ),
        Config("homa_afxdp", "Homa, AF_XDP, unpinned", "homa", ("--via", "afxdp")),
        Config(
            "homa_udp_spin",
            "Homa, UDP, spinning, two cores",
            "homa",
            ("--via", "udp", "--spin"),
            _CROSS,
        ),
        Config("homa_udp", "Homa, UDP, unpinned", "homa", ("--via", "udp")),
    ]


def _rate() -> list[Config]:
    one, many = ("--connections", "1"), ("--connections", "16")
    return [
        Config("tcp_1_same", "TCP, 1 connection, same core", "tcp", one, _SAME),
        Config("tcp_1_cross", "TCP, 1 connection, two cores", "tcp", one, _CROSS),
        Config(
            "tcp_1_spin", "TCP, 1 connection, spinning, two cores", "tcp", (*one, "--spin"), _CROSS
        ),
        Config("tcp_1", "TCP, 1 connection, unpinned", "tcp", one),
        Config("tcp_16_same", "TCP, 16 connections, same core", "tcp", many, _SAME),
        Config("tcp_16_cross", "TCP, 16 connections, two cores", "tcp", many, _CROSS),
        Config("tcp_16", "TCP, 16 connections, unpinned", "tcp", many),
        Config(
            "tcp_pool_cross",
            "TCP, pool of connections, two cores",
            "tcp-pool",
            ("--connections", "64"),
            _CROSS,
        ),
        Config(
            "tcp_pool", "TCP, pool of connections, unpinned", "tcp-pool", ("--connections", "64")
        ),
        Config("homa_afxdp_same", "Homa, AF_XDP, same core", "homa", ("--via", "afxdp"), _SAME),
        Config("homa_afxdp_cross", "Homa, AF_XDP, two cores", "homa", ("--via", "afxdp"), _CROSS),
        Config("homa_afxdp", "Homa, AF_XDP, unpinned", "homa", ("--via", "afxdp")),
        Config("homa_udp", "Homa, UDP, unpinned", "homa", ("--via", "udp")),
    ]


def _goodput() -> list[Config]:
    result = []
    for on, suffix in ((False, "offloads_off"), (True, "offloads_on")):
        words = "offloads on" if on else "offloads off"
        for count in (1, 4):
            plural = "connection" if count == 1 else "connections"
            options = ("--connections", str(count))
            result += [
                Config(
                    f"tcp_{count}_{suffix}",
                    f"TCP, {count} {plural}, {words}",
                    "tcp",
                    options,
                    None,
                    on,
                    words,
                ),
                Config(
                    f"tcp_{count}_cross_{suffix}",
                    f"TCP, {count} {plural}, two cores, {words}",
                    "tcp",
                    options,
                    _CROSS,
                    on,
                    words,
                ),
            ]
        via = ("udp",) if on else ("afxdp", "udp")
        for name in via:
            label = f"Homa, {name.upper().replace('AFXDP', 'AF_XDP')}, {words}"
            result.append(
                Config(f"homa_{name}_{suffix}", label, "homa", ("--via", name), None, on, words)
            )
    return result


def configurations(what: str, transports: set[str], root: bool) -> list[Config]:
    """What `./homa bench WHAT` runs here: what homa-bench can, with the cores that there are."""
    everything = {"rtt": _rtt, "rate": _rate, "goodput": _goodput}[what]()
    cores = len(os.sched_getaffinity(0))
    return [
        config
        for config in everything
        if config.transport in transports
        and (config.cores is None or max(config.cores) < cores)
        and (root or "afxdp" not in config.options)
    ]
