# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Sudden death of applications and of the daemon: peers learn, ports are free, nothing stays.

HOMA_CHURN_CYCLES=10000 is the whole of it (`./homa fuzz --churn 10000`); HOMA_CHURN_RATE is how many
applications live and die per second, 0: as many as the machine can.
"""

from __future__ import annotations

import os
import signal
import time

import pytest
from apitool import CLIENT, PATIENT
from homad import (
    PROGRAMS,
    Host,
    SANITIZED,
    needs_homad,
    needs_root,
    one_host,
    protocol,
    report,
    two_hosts,
)
from netns import eventually
from test_hostile import STEADY, echo_server, ended_well, going

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

CYCLES = int(os.environ.get("HOMA_CHURN_CYCLES") or 60)
RATE = int(os.environ.get("HOMA_CHURN_RATE") or 0)
RPCS = 1000
# Memory of a process that does the same without homad, in bytes.
MEMORY = 2 << 20
# Memory that the daemon may keep for the next application, kB: slabs grow to the highest use.
KEPT_KB = 16 << 10


def others(host: Host, words: list[str]) -> tuple[int, int, int, float]:
    """(count, median, P99) of another application's RPCs, in us, while `churn` runs with `words`, and
    lives per second."""
    steady = going(host.start([STEADY, host.address(host, 4000), "0", "8", "100"]))
    begun = time.monotonic()
    done = host.run([PROGRAMS / "churn", str(CYCLES), *words], timeout=60 + CYCLES * 2)
    took = time.monotonic() - begun
    assert done.stdout == f"{CYCLES} cycles\n"
    count, median, p99, _ = ended_well(steady)
    return count, median, p99, CYCLES / took


def test_attach_and_kill__leaves_nothing() -> None:
    """1,000 RPCs in flight each time; another application goes on and has only right answers."""
    with one_host(config={**protocol(PATIENT), "log": {"level": "warning"}}) as host:
        before = host.homad.resources()
        echo_server(host, 4000)
        target = echo_server(host, 4001)
        alone = going(host.start([STEADY, host.address(host, 4000), "2", "8", "100"]))
        status, out, err = alone.wait(60)
        assert status == 0, err
        _, median, p99, _ = map(int, out.split()[-4:])
        warm_up = host.run([PROGRAMS / "churn", "10", str(RPCS), host.v4, "4001"], timeout=600)
        assert warm_up.stdout == "10 cycles\n"
        memory = host.homad.rss()
        *_, bare_p99, _ = others(host, ["bare", str(MEMORY), str(RATE)])
        count, other_median, other_p99, rate = others(host, [str(RPCS), host.v4, "4001", str(RATE)])
        grown = host.homad.rss() - memory
        report(
            cycles=CYCLES, rpcs_in_flight=RPCS, lives_per_second=round(rate), grown_kb=grown,
            others_median_us=other_median, others_p99_us=other_p99, others_n=count,
            alone_median_us=median, alone_p99_us=p99, bare_p99_us=bare_p99,
            p99_ratio=round(other_p99 / max(p99, 1), 2),
            bare_ratio=round(bare_p99 / max(p99, 1), 2),
            leaks=int(grown >= KEPT_KB and not SANITIZED),
        )  # fmt: skip
        # A sanitizer keeps freed memory for a while.
        if not SANITIZED:
            assert grown < KEPT_KB, grown
        assert target.running() and target.stop(timeout=60)[0] == 0
        host.homad.check()
        host.space.stop()
        host.homad.await_resources(before, 60)


def test_port__is_free_at_once() -> None:
    """A server killed and started again on the same port, ten times."""
    with one_host(config=protocol(PATIENT)) as host:
        for _ in range(10):
            server = echo_server(host, 4000)
            host.run([CLIENT, "receive_id", host.address(host, 4000)])
            server.send_signal(signal.SIGKILL)
            server.wait()


def test_server_killed__peers_get_errors() -> None:
    """On this machine and on the other one, long before any timeout."""
    with two_hosts(config=protocol(PATIENT)) as (a, b):
        for client in (a, b):
            server = echo_server(b, 4000)
            steady = going(client.start([STEADY, client.address(b, 4000), "0", "16"]))
            server.send_signal(signal.SIGKILL)
            begun = time.monotonic()
            status, _, err = steady.wait(60)
            assert status == 1 and "failed" in err, err
            assert time.monotonic() - begun < 15, "it timed out instead"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_daemon_ends__applications_are_told_and_come_back(number: int) -> None:
    """Open requests fail with an error that says it; handles of clients and servers work again with the next one."""
    with one_host(config=protocol(PATIENT)) as host:
        server = echo_server(host, 4000)
        steady = going(host.start([STEADY, host.address(host, 4000)]))
        mending = going(host.start([STEADY, host.address(host, 4000), "0", "16", "0", "mend"]))
        for _ in range(3):
            host.homad.stop(number)
            host.homad.start()
            mending.send_signal(signal.SIGUSR1)
            assert mending.line(60) == "works"
        ended_well(mending)
        status, _, err = steady.wait(30)
        # Its next request may be refused before it hears of those that were open.
        assert status == 1 and ("reset" in err or "homad is not running" in err), err
        # The same server, on the port that it bound before.
        host.run([CLIENT, "async", host.address(host, 4000)])
        assert server.stop(timeout=60)[0] == 0


def test_daemon_killed__others_are_not_confused() -> None:
    """The other host's RPCs fail or succeed, and go on when the daemon and its server are back, several times."""
    # A response that had begun is waited for until the timeout: nobody knows of its RPC any more.
    with two_hosts(
        config=protocol("timeout_us=10000000,tombstone_ms=25000,restart_guard_us=1")
    ) as (a, b):
        server = echo_server(b, 4000)
        mending = going(a.start([STEADY, a.address(b, 4000), "0", "16", "0", "mend"]))
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            b.homad.stop(number)
            b.homad.start()
            mending.send_signal(signal.SIGUSR1)
            assert mending.line(60) == "works"
            a.run([CLIENT, "async", a.address(b, 4000)])
        ended_well(mending)
        a.homad.check()
        assert server.stop(timeout=60)[0] == 0


def test_killed_daemon__its_socket_file_does_not_matter() -> None:
    with one_host() as host:
        host.homad.kill()
        assert host.homad.socket.exists()
        host.homad.start()
        host.run([PROGRAMS / "probe", "attach"])


def test_both_die__again_and_again() -> None:
    """Applications and the daemon killed at random moments of each other's lives."""
    with one_host(config=protocol(PATIENT)) as host:
        for turn in range(6):
            server = echo_server(host, 4000)
            clients = [going(host.start([STEADY, host.address(host, 4000)])) for _ in range(3)]
            time.sleep(0.03 * turn)
            clients[0].send_signal(signal.SIGKILL)
            if turn % 2:
                host.homad.kill()
                host.homad.start()
            clients[1].send_signal(signal.SIGKILL)
            server.send_signal(signal.SIGKILL)
            for process in (*clients, server):
                process.wait(60)
            eventually(lambda: host.homad.maps() == 0, 30)
        host.homad.check()
