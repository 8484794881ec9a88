# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Settings of the protocol change while a homad of several threads serves: its threads pause for that."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from homad import PROGRAMS, Homad, Host, Settings, needs_homad, needs_root, one_host
from ops_tools import snapshot
from test_cores import SLOW, dedicated
from test_hostile import STEADY, echo_server, ended_well, going

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core"),
]

SHARER, CHURN = PROGRAMS / "sharer", PROGRAMS / "churn"
TWO: Settings = {"threads": {"mode": "dedicated", "cores": [0, 1], "scale": False}}


def settings(threads: dict[str, object], **protocol: int) -> Settings:
    return {
        "threads": {"mode": "dedicated", "cores": [0, 1]} | threads,
        "protocol": SLOW["protocol"] | protocol,
    }


def reload(homad: Homad, config: Settings) -> str:
    """What the daemon said to its new configuration; of many in a row its log leaves some out."""
    before = len(homad.log())
    homad.configure(config)
    homad.send_signal(signal.SIGHUP)
    # The same thread answers: what it was told before the first is done before the second.
    for _ in range(2):
        snapshot(homad)
    return homad.log()[before:]


@contextmanager
def silent(host: Host) -> Iterator[None]:
    """Its homad says nothing meanwhile."""
    host.homad.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        host.homad.send_signal(signal.SIGCONT)


THREADS: dict[str, dict[str, object]] = {
    "one thread": {"mode": "shared"},
    "both awake": {"scale": False},
    "one asleep": {"scale": True, "scale_busy": 0.0, "scale_ms": 10},
}


@pytest.mark.parametrize("threads", THREADS.values(), ids=THREADS.keys())
def test_reload__settings_of_the_protocol_hold_at_once(threads: dict[str, object]) -> None:
    with dedicated(threads) as (a, b):
        if threads.get("scale"):
            a.homad.await_log("fast path changed its cores.*to=1")
        said = reload(a.homad, settings(threads, timeout_us=300_000, unsched_bytes=20_000))
        for name in ("timeout_us value=300000", "unsched_bytes value=20000"):
            assert f"setting changed setting=protocol.{name}" in said, said
        assert "needs a restart" not in said
        # With the timeout of before it would be a minute. Of so many RPCs some have their timers
        # in a shard of each thread, and a thread without work sees to its timers, too.
        with silent(b):
            done = a.run([SHARER, "ask", a.address(b, 4000), "8"], timeout=50)
        assert "first failure: Connection timed out" in done.stderr, done
        said = reload(a.homad, settings(threads, timeout_us=300_000, max_rpcs=1000))
        assert "needs a restart setting=protocol.max_rpcs" in said, said
        assert "setting changed setting=protocol.unsched_bytes" in said, said


@pytest.mark.parametrize("scale", [False, True], ids=["two threads", "threads come and go"])
def test_reload__many_in_a_row_hurt_no_rpc(scale: bool) -> None:
    threads = {"scale": scale, "scale_busy": 0.9, "scale_idle": 0.95, "scale_ms": 10}
    with dedicated(threads) as (a, b):
        servers = [echo_server(a, 4000), echo_server(a, 4001), echo_server(b, 4000)]
        runs = [
            going(b.start([STEADY, b.address(a, 4000), "0", "8"])),
            going(b.start([STEADY, b.address(a, 4001), "0", "8"])),
            going(a.start([STEADY, a.address(b, 4000), "0", "8"])),
            going(a.start([STEADY, a.address(a, 4001), "0", "8"])),
        ]
        # Attach, have many RPCs open, die; and again.
        dying = a.start([CHURN, "100000", "50", a.v4, "4000"])
        for i in range(50):
            said = reload(
                a.homad,
                settings(threads, unsched_bytes=10_000 * (1 + i % 9), max_overcommit=1 + i % 8),
            )
            assert "needs a restart" not in said, said
        assert dying.running()
        dying.stop(signal.SIGKILL)
        for run in runs:
            ended_well(run)
        for server in servers:
            server.stop()


def test_reload__the_end_comes_in_the_middle() -> None:
    with one_host(settings({}, unsched_bytes=10_000)) as host:
        # They come back with the next one, until the last has ended.
        echo_server(host, 4000)
        going(host.start([STEADY, host.address(host, 4000), "0", "8", "0", "mend"]))
        for i in range(8):
            if not host.homad.running():
                host.homad.start()
            for j in range(1 + i):
                host.homad.configure(settings({}, unsched_bytes=20_000 + 1_000 * i + 100 * j))
                host.homad.send_signal(signal.SIGHUP)
            assert host.homad.stop(timeout=60) == 0, host.homad.log()
