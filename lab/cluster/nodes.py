# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The load generators of `./homa lab run`: a homa-bench on each host, client and server of all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from lab.bench import results
from lab.bench.histogram import merge
from lab.cluster import simulated
from lab.cluster.points import Point
from lab.cluster.setup import Setup, warmup_s
from lab.console import Steps
from lab.errors import LabError
from lab.net import tcp
from lab.net.homad import Homad, homads, unmodified, unmodified_env
from lab.net.hosts import Lab
from lab.net.runner import Job, ahead
from lab.net.switch import Switch, Traits, build_switch
from lab.paths import homa_bench

PORT = 4000
TIMEOUT_S = 120.0
# Streams of TCP from a host to each other: in ATC'21 four ports of clients by eight of servers.
STREAMS = 32
HOST_S = 0.8  # about, to make a host
# Receive buffers of a host's Homa in its program, bytes. The usual 32 MiB have room for some 28 of
# the longest messages, and more may come at once from many hosts.
RCVBUF = 256 << 20
# What homad does of TCP.
RULES = "".join(
    f'[[tcp_rule]]\n{which} = [{PORT}, {PORT}]\ncongestion = "cubic"\n'
    for which in ("listen", "connect")
)
# What the engine counts of messages for which it had no buffers, and of what was sent for nothing.
COUNTED = ("buffer_waits", "buffers_given_back", "restarts", "rx_duplicates")


class Network(Protocol):
    """Hosts with links of one rate: a lab's switch, or real hosts."""

    @property
    def hosts(self) -> Sequence[Any]:
        """Each has an address, and a command() to run something there."""
        ...

    @property
    def rate_bps(self) -> int:
        """Of each link."""
        ...


def switched(
    lab: Lab, steps: Steps, setup: Setup, hosts: int, rate: int,
    rto_min_ms: int = tcp.SLOW_RTO_MIN_MS,
) -> Switch:  # fmt: skip
    """So many hosts around a switch with links of `rate`; `rto_min_ms`: TCP's least timeout."""
    with steps(f"making {hosts} hosts", hosts * HOST_S):
        switch = build_switch(lab, hosts, rate, setup.buffer, Traits(mtu=setup.mtu), uplinks=True)
        tcp.tune(switch.hosts, rto_min_ms=rto_min_ms)
    return switch


def tune(switch: Switch, point: Point) -> None:
    """Give all hosts' TCP the congestion control of the point."""
    if point.by_kernel:
        tcp.tune(switch.hosts, point.congestion, tcp.SLOW_RTO_MIN_MS)


@contextmanager
def programs(
    setup: Setup, switch: Network, point: Point, more: str = ""
) -> Iterator[Callable[[str], dict[str, str]]]:
    """What programs of a host, by its address, must know: the rate of the link, or their homad, which
    has `more` settings."""
    mbps = switch.rate_bps // 10**6
    # As programs below: polling costs the processors.
    text = f'[network]\nlink_mbps = {mbps}\nbulk = "off"\n[threads]\nspin_us = 1\n{more}'
    if point.by_kernel or (setup.real and setup.via == "service"):
        yield lambda address: {}
    elif point.by_homad:
        with homads(switch.hosts, ahead(), settings=text + RULES) as running:
            daemons = {daemon.host.address: daemon for daemon in running}
            asked: dict[str, Homad] = {}

            def env_of(address: str) -> dict[str, str]:
                asked[address] = daemons[address]
                return unmodified_env(daemons[address].env)

            yield env_of
            carried(list(asked.values()))
    elif setup.via == "program":
        yield lambda address: {"HOMA_LINK_MBPS": str(mbps)}
    else:
        known = simulated.settings(point, setup.link_bps / switch.rate_bps)
        words = [word for setting in known for word in ("--set", setting)]
        with homads(switch.hosts, ahead(), arguments=tuple(words), settings=text) as running:
            env = {daemon.host.address: daemon.env for daemon in running}
            yield lambda address: env[address]


def carried(daemons: list[Homad]) -> None:
    """A LabError unless each of these carried connections: a program that its homad does not take goes
    to the kernel, and says nothing."""
    for daemon in daemons:
        tcp_ = daemon.snapshot().get("tcp", {}).get("engine", {})
        if not tcp_.get("opened_active", 0) + tcp_.get("opened_passive", 0):
            raise LabError(f"the homad of {daemon.host.address} carried no connection of TCP")


def program(point: Point) -> list[str]:
    """The words that run homa-bench."""
    return unmodified([str(homa_bench())]) if point.by_homad else [str(homa_bench())]


def options(setup: Setup, point: Point, rate: int) -> list[str]:
    """What every homa-bench of a point is told."""
    options = ["--transport", point.spoken, "--workload", point.workload]
    options += ["--mtu", str(setup.mtu), "--timeout", str(TIMEOUT_S), "--quiet"]
    if point.spoken == "tcp":
        options += ["--connections", str(STREAMS)]
    if point.by_homad:
        options += ["--any-source"]
    # Links are so slow that waking up costs nothing, but polling costs the processors.
    if point.transport == "homa" and not setup.real:
        options += ["--spin-us", "1"]
    if point.transport == "homa" and setup.via == "service":
        options += ["--via", "service"]
    elif point.transport == "homa":
        known = simulated.settings(point, setup.link_bps / rate)
        options += ["--via", "afxdp", "--homa-config", ",".join(known), "--rcvbuf", str(RCVBUF)]
    return options


def jobs(
    setup: Setup, switch: Network, point: Point, start: float, env: Callable[[str], dict[str, str]]
) -> list[Job]:
    """A node per host; all begin at `start` (CLOCK_MONOTONIC; of real hosts Unix time)."""
    jobs = []
    window = setup.window_s(point, switch.rate_bps)
    slower = setup.link_bps / switch.rate_bps
    clock = "" if setup.real else "mono:"
    for index, host in enumerate(switch.hosts):
        argv = [*program(point), "node", "--bind", f"{host.address}:{PORT}"]
        for other in switch.hosts:
            argv += ["--peer", f"{other.address}:{PORT}"] if other is not host else []
        argv += options(setup, point, switch.rate_bps)
        argv += ["--gbps", f"{point.load * switch.rate_bps / 1e9:.10g}"]
        argv += ["--seed", str(setup.seed), "--host-index", str(index)]
        argv += ["--warmup", str(warmup_s(switch.rate_bps)), "--duration", str(window)]
        argv += ["--drain", f"{simulated.drain_s(slower):g}", "--connect-timeout", "30"]
        argv += ["--stay", f"{simulated.stay_s(slower):g}"]
        argv += ["--start-at", f"{clock}{start:.6f}", "--json", "{json}"]
        name = f"{point.transport} on host {index + 1}"
        jobs.append(Job(name, argv, host, punctual=True, env=env(host.address)))
    return jobs


def busy_of(nodes: list[results.BenchResult], cores: int) -> float:
    """The share of this machine's processors that was not idle in the window, whoever used it."""
    return max(node.machine_busy_s / max(node.window_s, 1e-9) for node in nodes) / cores


def counted(nodes: list[results.BenchResult]) -> dict[str, float]:
    """Of each of COUNTED how many there were on all hosts; nothing if their programs do not say it."""
    metrics = [node.details["metrics"] for node in nodes if "metrics" in node.details]
    return {name: float(sum(one.get(name, 0) for one in metrics)) for name in COUNTED if metrics}


def together(nodes: list[results.BenchResult]) -> list[results.SizeClass]:
    """The tenths of all hosts' messages."""
    found = []
    for parts in zip(*(node.classes for node in nodes), strict=True):
        found.append(
            results.SizeClass(
                min(one.size_min for one in parts),
                max(one.size_max for one in parts),
                sum(one.failed for one in parts),
                merge(one.latency for one in parts),
                merge(one.slowdown for one in parts),
            )
        )
    return found
