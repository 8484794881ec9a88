# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Measures a network from one host: round trips, TCP's rate, throughput by overcommitment.

Servers of Homa and TCP are started where the other hosts are namespaces of a lab; on a real
network they must run already.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from lab.errors import LabError
from lab.net.hosts import Host
from lab.net.runner import Job, run_jobs
from lab.paths import homa_bench
from lab.tune.choose import Measured, Rate, Times

PORT = 4000
LIMIT_S = 120.0  # beside the window, until a measurement has hung
# Not 1: a sender may be busy with others, and this measurement has only willing ones.
OVERCOMMIT = (2, 4, 8)
FRAME_WIRE = 38 - 14  # preamble, FCS and gap of a frame: what the kernel does not count
POLL_US = 1000


@dataclass(frozen=True)
class Network:
    """Where to measure: from `here` to `peers` (ADDRESS:PORT), with servers in the hosts `others`
    (none: they run already). `link_bps` and `link_from` as in Measured; `via`: udp or afxdp."""

    here: Host
    peers: list[str]
    others: list[Host]
    mtu: int
    link_bps: int
    link_from: str
    via: str
    seconds: float


def measure(net: Network, say: Callable[[str], None]) -> Measured:
    """All measurements, one after the other; `say` is told what comes next."""
    say("round trips, polling")
    polled = _times(net, POLL_US)
    say("round trips, sleeping")
    asleep = _times(net, 1)
    say("what TCP carries")
    tcp = _rate(net, "tcp", ["--mode", "goodput", "--connections", "4"], net.peers[:1], "tx_bytes")
    goodput = {}
    for number in OVERCOMMIT if len(net.peers) > 1 else ():
        say(f"all send to one host, {number} granted at a time")
        words = ["--size", "100", "--response-size", "500000"]
        words += ["--outstanding", str(2 * len(net.peers))]
        words += ["--homa-config", f"max_overcommit={number}"]
        goodput[number] = _rate(net, "homa", words, net.peers, "rx_bytes")
    return Measured(
        net.here.device, net.mtu, net.link_bps, net.link_from, polled, asleep, tcp, goodput
    )


def _client(net: Network, transport: str, words: list[str], peers: list[str]) -> tuple[dict, str]:
    """The result of a homa-bench client, and its command for people."""
    program = str(homa_bench())
    homa = ["--via", net.via] if transport == "homa" else []
    homa += ["--interface", net.here.device] if transport == "homa" else []
    argv = ["client", "--transport", transport, *homa, *words]
    argv += [word for peer in peers for word in ("--peer", peer)]
    argv += ["--warmup", "0.5", "--duration", f"{net.seconds:g}", "--mtu", str(net.mtu)]
    argv += ["--timeout", "60", "--connect-timeout", "30"]
    env = {"HOMA_LINK_MBPS": str(max(1, net.link_bps // 10**6))} if net.link_bps else {}
    jobs = [
        Job(
            f"the {transport} server of {host.address}",
            [
                program,
                "server",
                "--transport",
                transport,
                "--bind",
                f"{host.address}:{PORT}",
                *homa,
            ],
            host,
            background=True,
            env=env,
        )
        for host in net.others
    ]
    quiet = ["--quiet", "--no-histograms", "--json", "{json}"]
    jobs.append(Job(f"{transport} client", [program, *argv, *quiet], net.here, env=env))
    found = run_jobs(jobs, net.seconds + LIMIT_S)[-1]
    if not isinstance(found, dict):
        raise LabError(f"homa-bench has written no result for {transport}")
    shown = [f"{name}={value}" for name, value in env.items()]
    return found, shlex.join([*shown, "homa-bench", *argv])


def _times(net: Network, spin_us: int) -> Times:
    words = ["--mode", "rtt", "--spin-us", str(spin_us)]
    found, command = _client(net, "homa", words, net.peers[:1])
    return times_of(found, command)


def times_of(found: dict, command: str) -> Times:
    """The round trips in a result of homa-bench."""
    try:
        row = found["latency_ns"]
        count = int(row["count"])
        if not count:
            return Times(0, 0.0, 0.0, command)
        return Times(count, float(row["min"]) / 1e3, float(row["mean"]) / 1e3, command)
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"homa-bench's result cannot be read: {error!r}") from None


def _rate(net: Network, transport: str, words: list[str], peers: list[str], count: str) -> Rate:
    found, command = _client(net, transport, words, peers)
    return rate_of(found, net.here.device, count, command)


def rate_of(found: dict, device: str, count: str, command: str) -> Rate:
    """What `device` carried in the window of a result, by the kernel; `count`: "tx_bytes" or
    "rx_bytes"."""
    try:
        for row in found["interfaces"]:
            if row["name"] == device:
                packets = row[count.replace("bytes", "packets")]
                seconds = float(found["time"]["window_s"])
                return Rate((row[count] + FRAME_WIRE * packets) * 8 / seconds, command)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise LabError(f"homa-bench's result cannot be read: {error!r}") from None
    raise LabError(f"no traffic went through {device}; does the way to the peers lead there?")
