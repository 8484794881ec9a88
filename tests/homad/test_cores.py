# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad with cores of its own: threads that come and go with the load, device queues that follow them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from apitool import CLIENT
from homad import Homad, Host, finishing, needs_homad, needs_root
from netns import Net
from ops_tools import snapshot
from test_hostile import STEADY, echo_server, ended_well, going

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core"),
]

# Two spinning daemons on a test machine's cores: RPCs are slow, they must not fail.
SLOW = {"protocol": {"timeout_us": 60_000_000, "tombstone_ms": 60_000}}


@contextmanager
def dedicated(
    threads: dict[str, object], **tables: dict[str, object] | list[dict[str, object]]
) -> Iterator[tuple[Host, Host]]:
    """Two hosts on a veth pair with two queues; the first has a dedicated daemon, the second a usual one."""
    with Net() as net:
        a, b = net.pair(queues=2)
        settings = {**SLOW, **tables}
        cores = {"mode": "dedicated", "cores": [0, 1], **threads}
        first = Host(a, Homad(a, {**settings, "threads": cores}))
        second = Host(b, Homad(b, settings))
        with finishing(first.homad, second.homad):
            first.homad.start()
            second.homad.start()
            yield first, second


def serves_two_ways(a: Host, b: Host) -> None:
    """RPCs from `b` to `a` and back, through both of `a`'s threads and on the same machine."""
    servers = [echo_server(a, 4000), echo_server(a, 4001), echo_server(b, 4000)]
    runs = [
        going(b.start([STEADY, b.address(a, 4000), "0", "8"])),
        going(b.start([STEADY, b.address(a, 4001), "0", "8"])),
        going(a.start([STEADY, a.address(b, 4000), "0", "8"])),
        going(a.start([STEADY, a.address(a, 4001), "0", "8"])),
    ]
    for run in runs:
        ended_well(run)
    for server in servers:
        server.stop()


def test_dedicated__a_queue_for_each_thread() -> None:
    with dedicated({"scale": False}) as (a, b):
        assert a.homad.log().count("serving a device") == 2, a.homad.log()
        serves_two_ways(a, b)


def test_dedicated__threads_serve_all_queues_of_a_device_that_has_more() -> None:
    """A peer sends to each address by a queue of its own, and so it arrives."""
    with Net() as net:
        a, b = net.pair(queues=4)
        own = [f"10.9.0.{number}" for number in range(40, 56)]
        a.address(*(f"{address}/24" for address in own))
        cores = {"mode": "dedicated", "cores": [0, 1], "scale": False}
        # Without UDP a lost request is not sent in another way.
        settings = {**SLOW, "network": {"udp": False}}
        first = Host(a, Homad(a, {**settings, "threads": cores}))
        second = Host(b, Homad(b, settings))
        with finishing(first.homad, second.homad):
            first.homad.start()
            second.homad.start()
            echo_server(first, 4000)
            for address in own:
                second.run([CLIENT, "async", f"{address}:4000"], timeout=60)
            log = first.homad.log()
            assert "queues 0-1 of 4" in log and "queues 2-3 of 4" in log, log


def test_shared__one_thread_serves_all_queues_of_a_large_device() -> None:
    """More than 16, whose buffers they then share. What comes on any of them is heard."""
    with Net() as net:
        a, b = net.pair(queues=24)
        own = [f"10.9.0.{number}" for number in range(40, 64)]
        a.address(*(f"{address}/24" for address in own))
        settings = {**SLOW, "network": {"udp": False}}
        first, second = (Host(space, Homad(space, settings)) for space in (a, b))
        with finishing(first.homad, second.homad):
            first.homad.start()
            second.homad.start()
            log = first.homad.log()
            assert "queues 0-23 of 24" in log and "more queues than" not in log, log
            echo_server(first, 4000)
            for address in own:
                second.run([CLIENT, "async", f"{address}:4000"], timeout=60)


def test_dedicated__a_thread_without_work_sends_what_another_gave_to_its_device() -> None:
    """UDP is the first thread's, and the program the second's. The first has nothing to do, so it
    must hear of each request."""
    udp = {"interfaces": [], "udp": True}
    with dedicated({"scale": False}, network=udp) as (a, b):
        quiet, server = echo_server(a, 4000), echo_server(b, 4000)
        ended_well(going(a.start([STEADY, a.address(b, 4000), "0", "1", "100"])))
        apps = snapshot(a.homad)["apps"]
        assert [app["thread"] for app in apps if app["port"] == 4000] == [0]
        quiet.stop()
        server.stop()


def test_dedicated__cores_come_and_go() -> None:
    """With any load a thread comes, without it goes, every 10 ms, and no RPC is hurt by it."""
    with dedicated({"scale": True, "scale_busy": 0.9, "scale_idle": 0.95, "scale_ms": 10}) as (
        a,
        b,
    ):
        serves_two_ways(a, b)
        a.homad.await_log("fast path changed its cores.*from=1 to=2")
        a.homad.await_log("fast path changed its cores.*from=2 to=1")
