# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The rows of `./homa bench tas`: what the paper (TAS, EuroSys 2019) measured, and how it is measured here.

A row has points (so many connections, such a loss), and each point runs on several ways: with the kernel's TCP at
both ends ("kernel"), with homad at both ("homad"), at the server's only or at the client's only.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.bench.configs import Metric

TUPLES = Metric("rate", "1000\ntuples/s", False, 1e3)
RATE = Metric("rate", "1000\nrequests/s", False, 1e3)
GOODPUT = Metric("bits_per_s", "Gbit/s", False, 1e9)
MEDIAN = Metric("p50_us", "median\nµs", True)
P90 = Metric("p90_us", "P90\nµs", True)
P99 = Metric("p99_us", "P99\nµs", True)
SERVER_CPU = Metric("server_cpu_us", "server and\nhomad CPU µs", True)
JAIN = Metric("jain", "Jain's\nindex", False)
TAIL = Metric("tail", "P99 to\nmedian", True)

KERNEL, HOMAD, SERVER, CLIENT = "kernel", "homad", "server", "client"
BOTH = (KERNEL, HOMAD)
WAYS = {
    KERNEL: (False, False),
    HOMAD: (True, True),
    SERVER: (True, False),
    CLIENT: (False, True),
}
WAY_TEXTS = {
    KERNEL: "kernel's TCP",
    HOMAD: "homad at both ends",
    SERVER: "homad at the server",
    CLIENT: "homad at the client",
}


@dataclass(frozen=True)
class Point:
    """`words` are homa-flows' options, for both ends; `loss` is in tenths of a percent (None: another network, one
    without a bridge). `half`: open loop with half the requests per second that the kernel's TCP managed at the
    point before it in the same round. `redis`: redis-server and redis-benchmark instead of homa-flows."""

    key: str
    label: str
    words: tuple[str, ...]
    loss: int | None = None
    half: bool = False
    share: float = 0.5
    redis: bool = False


@dataclass(frozen=True)
class Row:
    """What is compared: `metrics` of all `points` on all `ways`. `offloads`: devices cut and merge segments.
    `paper` has the published values and their place, `differs` what is not as in the paper. `pipeline`: four
    programs in a row, from host to host and back, instead of a server and a client. `one_host`: both run on the first
    host, and what they say to each other never leaves it."""

    key: str
    title: str
    paper: str
    differs: str
    points: tuple[Point, ...]
    ways: tuple[str, ...]
    metrics: tuple[Metric, ...]
    offloads: bool = True
    pipeline: bool = False
    one_host: bool = False


def _echo(connections: int) -> Point:
    words = ("--connections", str(connections), "--ports", str(1 + connections // 16384))
    return Point(str(connections), f"{connections:,}", (*words, "--timeout", "60"))


def _short(requests: int) -> Point:
    # To one port of a server homad opens at most `ports` connections in a second, as a pair rests so long
    # before it is used again; more than that are made here.
    words = ("--connections", "64", "--ports", "4", "--per-connection", str(requests))
    return Point(str(requests), f"{requests} of each connection", words)


def _pipelined(mode: str, size: int, work: int) -> Point:
    words = ("--mode", mode, "--size", str(size), "--work", str(work), "--connections", "100")
    way = "received" if mode == "send" else "sent"
    return Point(f"{mode}-{size}-{work}", f"{size} B {way}, {work} cycles", words)


def _loss(per_mille: int) -> Point:
    words = ("--mode", "receive", "--size", "16384", "--connections", "100", "--duration", "3")
    return Point(str(per_mille), f"{per_mille / 10:g} % lost", words, per_mille)


def _bulk(connections: int) -> Point:
    words = ("--mode", "receive", "--size", "65536", "--connections", str(connections))
    plural = "s" if connections > 1 else ""
    return Point(str(connections), f"{connections} connection{plural}", words)


_TUPLES = ("--size", "64", "--work", "1000")
_KV = ("--mode", "kv", "--connections", "64")
_CONNECTIONS = (1, 16, 64, 256, 1024, 4096, 16384)

ROWS = (
    Row(
        "connections",
        "Figure 4: echo of 64 B, one request in flight on each connection",
        "1,024 connections: 5.1 times Linux; 64 k: 0.93 of the peak, Linux 0.6 (5.1)",
        "two cores for both hosts and their programs; up to 16 k connections",
        tuple(_echo(count) for count in _CONNECTIONS),
        (KERNEL, HOMAD, SERVER),
        (RATE, MEDIAN, P99, SERVER_CPU),
    ),
    Row(
        "short",
        "Figure 5: short connections, 64 at a time",
        "more than Linux from 4 requests of a connection on (5.1)",
        "64 connections at a time instead of 1,024",
        tuple(_short(count) for count in (1, 4, 16, 64, 256)),
        BOTH,
        (RATE,),
    ),
    Row(
        "pipelined",
        "Figure 6: requests one after the other on 100 connections, each with work for the server",
        "64 B received: 4.5 times Linux; 64 B sent: 12.4 times; 2 KB: 40 Gbit/s (5.1)",
        "two cores for all, so the peer's work counts, too",
        tuple(
            _pipelined(mode, size, work)
            for mode in ("send", "receive")
            for work in (250, 1000)
            for size in (64, 512, 2048)
        ),
        (KERNEL, SERVER, HOMAD),
        (GOODPUT,),
    ),
    Row(
        "loss",
        "Figure 7: 100 connections over a network that loses packets",
        "1 %: 1.5 % less, 5 %: 13 % less than without loss; Linux half of that (5.2)",
        "losses in both directions, devices without offloads",
        tuple(_loss(per_mille) for per_mille in (0, 1, 10, 50)),
        BOTH,
        (GOODPUT,),
        offloads=False,
    ),
    Row(
        "interop",
        "Table 4: 100 connections in one direction",
        "9.4 Gbit/s with all four pairs",
        "no link of a fixed rate: the processors are the limit",
        (_bulk(100),),
        (KERNEL, HOMAD, SERVER, CLIENT),
        (GOODPUT, JAIN),
    ),
    Row(
        "bulk",
        "one connection and sixteen in one direction, devices with offloads",
        "nothing",
        "not in the paper",
        (_bulk(1), _bulk(16)),
        (KERNEL, HOMAD, SERVER, CLIENT),
        (GOODPUT,),
    ),
    Row(
        "bulk-plain",
        "one connection and sixteen in one direction, devices without offloads",
        "nothing",
        "not in the paper",
        (_bulk(1), _bulk(16)),
        (KERNEL, HOMAD),
        (GOODPUT,),
        offloads=False,
    ),
    Row(
        "kv",
        "Figures 8 and 9, Table 5: key-value store, 90 % GET, zipf 0.9, 32 B keys, 64 B values",
        "rate 7.0 times Linux with sockets, 9.6 with its own API; latency at 15 % of the link, median and P99: "
        "Linux 97 and 177 µs, TAS 17 and 30 µs (TAS clients)",
        "64 connections; latencies at half and at 15 % of the rate that the kernel's TCP has here",
        (
            Point("peak", "as fast as it goes", _KV),
            Point("half", "half of the kernel's rate", (*_KV, "--depth", "64"), half=True),
            Point("15", "15 % of the kernel's rate", (*_KV, "--depth", "64"), half=True, share=0.15),
        ),
        (KERNEL, HOMAD, SERVER, CLIENT),
        (RATE, MEDIAN, P90, P99, SERVER_CPU),
    ),
    Row(
        "kv-hot",
        "Table 7: all requests for one key, 256 connections",
        "two cores: 2.4 million requests/s with sockets, Linux 0.4 (5.3)",
        "two cores for both hosts and their programs",
        (Point("hot", "one key", ("--mode", "kv", "--connections", "256", "--one-key")),),
        (KERNEL, HOMAD, SERVER),
        (RATE,),
    ),
    Row(
        "pipeline",
        "Figure 10 and Table 8: a pipeline, tuples of 64 B through two stages with 0.35 µs of work each",
        "FlexStorm on 3 machines; a tuple in all queues 20 ms with Linux, which batches for 10 ms before it sends, 8 "
        "with TAS; the rate is only drawn (5.4)",
        "a program of our own with one connection between two stages, on two hosts; half: half of the rate that the "
        "kernel's TCP has without batches, arrivals at random",
        (
            Point("batch", "as fast as it goes, batches of 10 ms", (*_TUPLES, "--batch-us", "10000")),
            Point("peak", "as fast as it goes", _TUPLES),
            Point("half-batch", "half, batches of 10 ms", (*_TUPLES, "--batch-us", "10000"), half=True),
            Point("half", "half of the kernel's rate", _TUPLES, half=True),
        ),
        BOTH,
        (TUPLES, MEDIAN, P99),
        pipeline=True,
    ),
    Row(
        "incast",
        "Figure 13: what each connection receives in 100 ms",
        "P99 within 1.6 to 2.8 times the median (5.5)",
        "one sender and no switch with a queue",
        tuple(
            Point(str(n), f"{n} connections", ("--mode", "receive", "--size", "8192", "--connections", str(n),
                                               "--duration", "3"), 0)
            for n in (50, 500)
        ),
        BOTH,
        (TAIL, JAIN, GOODPUT),
        offloads=False,
    ),
    Row(
        "one-host",
        "two programs of one host: 50 connections with one request in flight on each",
        "nothing",
        "not in the paper; the kernel's way is its loopback",
        (
            Point("redis", "redis-benchmark -t get -c 50 -P 1", (), redis=True),
            Point("echo", "echo of 64 B", ("--connections", "50")),
        ),
        BOTH,
        (RATE,),
        one_host=True,
    ),
    Row(
        "one-host-bulk",
        "two programs of one host: one connection in one direction",
        "nothing",
        "not in the paper; the kernel's way is its loopback",
        (_bulk(1),),
        BOTH,
        (GOODPUT,),
        one_host=True,
    ),
)  # fmt: skip
