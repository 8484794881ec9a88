# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A host that knows the protocol and lies (liar.py), beside three honest ones on the same network.

HOMA_LIAR_SECONDS and HOMA_LIAR_SEED make it last longer or repeat it, HOMA_LIAR_FAMILY keeps it to
IPv4 or IPv6; with HOMA_LIAR_MEASURE rates and latencies are compared (`./homa fuzz --network`). While
nobody is lied to, the liar sends the same to a host without homad, so that its own use of the processors
is no difference.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from homad import (
    API_PROGRAMS,
    PATIENT,
    PROGRAMS,
    SANITIZED,
    Homad,
    Host,
    finishing,
    needs_homad,
    needs_root,
    report,
)
from netns import Namespace, Net, Process
from ops_tools import snapshot

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

LIAR = Path(__file__).with_name("liar.py")
SECONDS = float(os.environ.get("HOMA_LIAR_SECONDS") or 4)
SEED = int(os.environ.get("HOMA_LIAR_SEED") or time.time_ns() // 1000 % 10**9)
RATE = float(os.environ.get("HOMA_LIAR_RATE") or 3000)
MEASURE = "HOMA_LIAR_MEASURE" in os.environ
# Once in each run for either family: with homad under sanitizers.
BOTH = SANITIZED or os.environ.get("HOMA_TEST_LONG") == "1"
FAMILIES = (os.environ.get("HOMA_LIAR_FAMILY") or ("v4 v6" if BOTH else "v4")).split()
WINDOW = 5.0


@contextmanager
def network(family: str) -> Iterator[tuple[list[Host], Namespace, Namespace]]:
    """Three hosts with homad, the liar's namespace and one that nobody listens in, on one bridge;
    `v4` or `v6` of each is set."""
    with Net() as net:
        switch = net.namespace("sw")
        switch.ip("link", "add", "bridge", "type", "bridge")
        switch.ip("link", "set", "bridge", "up")
        spaces = []
        for number, name in enumerate(("ha", "hb", "hc", "liar", "sink")):
            space = net.namespace(name)
            net.veth(space, switch, b_device=f"p{number}")
            switch.ip("link", "set", f"p{number}", "master", "bridge")
            if family == "v4":
                space.v4 = f"10.9.0.{number + 1}"
                space.address(f"{space.v4}/24")
            else:
                space.v6 = f"fd09::{number + 1}"
                space.address(f"{space.v6}/64")
            spaces.append(space)
        # What is measured is what users have; else nothing may time out on a busy machine.
        hosts = [Host(s, Homad(s, "" if MEASURE else PATIENT)) for s in spaces[:3]]
        with finishing(*(h.homad for h in hosts)):
            for host in hosts:
                host.homad.start()
            yield hosts, spaces[3], spaces[4]


def going(process: Process) -> Process:
    assert process.line(60) == "going"
    return process


def address(space: Host | Namespace) -> str:
    return space.v4 or space.v6


def lie(space: Namespace, seconds: float, targets: list[str], seed: int) -> Process:
    words = [sys.executable, str(LIAR), seed, seconds, RATE, address(space), *targets]
    return going(space.start(list(map(str, words))))


def heard(host: Host) -> int:
    """Packets that its interfaces have given to homad."""
    return sum(int(p["nic"]["nic_rx_packets"]) for p in snapshot(host.homad)["ports"] if "nic" in p)


def window(hosts: list[Host], seconds: float) -> list[tuple[int, int, int]]:
    """(count, median, p99) of a steady application on each, which asks the next one. All their bytes
    and RPCs are good, or the test has failed."""
    fields = [
        going(
            a.start([PROGRAMS / "steady", a.address(b, 4000, "v4" if b.v4 else "v6"), seconds, 4])
        )
        for a, b in zip(hosts, hosts[1:] + hosts[:1], strict=True)
    ]
    results = []
    for steady in fields:
        status, out, err = steady.wait(seconds + 120)
        assert status == 0, f"seed {SEED}: {out}{err}"
        count, median, p99, _ = map(int, out.split()[-4:])
        assert count > 0
        results.append((count, median, p99))
    return results


def compare(hosts: list[Host], liar: Namespace, sink: Namespace) -> dict[str, float]:
    """Windows by turns: with lies and without."""
    rates: dict[bool, list[int]] = {True: [], False: []}
    tails: dict[bool, list[int]] = {True: [], False: []}
    counts: dict[bool, list[int]] = {True: [], False: []}
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end or number < 4:
        lies = number % 2 == 1
        targets = [address(h) for h in hosts] if lies else [address(sink)]
        talker = lie(liar, WINDOW, targets, SEED + number // 2)
        results = window(hosts, WINDOW)
        assert talker.wait(60)[0] == 0
        rates[lies].append(sum(r[0] for r in results))
        tails[lies].append(max(r[2] for r in results))
        counts[lies].append(min(r[0] for r in results))
        number += 1
    p99, alone = statistics.median(tails[True]), statistics.median(tails[False])
    return {
        "rate_ratio": round(sum(rates[True]) / len(rates[True]) / statistics.mean(rates[False]), 3),
        "p99_ratio": round(p99 / alone, 3),
        "p99_us": p99,
        "p99_us_alone": alone,
        # RPCs of one application in one window, at least, which a P99 is of.
        "p99_n": min(counts[True]),
        "p99_n_alone": min(counts[False]),
        "windows": number,
        "rpcs": sum(rates[True]),
        "rpcs_alone": sum(rates[False]),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_liar__honest_hosts_are_not_harmed(family: str) -> None:
    with network(family) as (hosts, liar, sink), ExitStack() as stack:
        for host in hosts:
            for port in ("4000", "4001"):
                server = host.start([API_PROGRAMS / "api_server", port, "2"])
                server.line()
                stack.callback(lambda s=server: s.stop(timeout=60))
        before = sum(map(heard, hosts))
        if MEASURE:
            figures = compare(hosts, liar, sink)
        else:
            talker = lie(liar, SECONDS, list(map(address, hosts)), SEED)
            figures = {"rpcs": sum(r[0] for r in window(hosts, SECONDS))}
            status, out, err = talker.wait(60)
            assert status == 0, err
            assert int(out.split()[0]) > 100, "it must have lied"
            print(out)
        assert sum(map(heard, hosts)) > before
        # What it left behind keeps nobody from anything.
        assert all(count for count, _, _ in window(hosts, 1))
        report(seed=SEED, seconds=SECONDS, harmed=0, **figures)
        for host in hosts:
            host.homad.check()
