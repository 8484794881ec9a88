# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Applications that break the rules: nothing but they themselves is harmed.

HOMA_HOSTILE_SECONDS and HOMA_HOSTILE_SEED make the fuzzer's run longer or repeat one (`./homa fuzz --hostile`).
HOMA_HOSTILE_KIND keeps it to some kinds of lives, such as "stream_*".
"""

from __future__ import annotations

import operator
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from apitool import CLIENT, PATIENT
from homad import (
    API_PROGRAMS,
    PROGRAMS,
    Host,
    needs_homad,
    needs_root,
    one_host,
    protocol,
    report,
    two_hosts,
)
from netns import Process, eventually

pytestmark = [needs_homad, needs_root, pytest.mark.sanitized]

HOSTILE, RULES, STEADY = PROGRAMS / "hostile", PROGRAMS / "rules", PROGRAMS / "steady"
SECONDS = float(os.environ.get("HOMA_HOSTILE_SECONDS") or 20)
KIND = os.environ.get("HOMA_HOSTILE_KIND") or "*"
SEED = int(os.environ.get("HOMA_HOSTILE_SEED") or time.time_ns() // 1000 % 10**9)
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# Nobody starves the others of attachments or of memory; there is plenty for each in the tests.
CONFIG = {**protocol(PATIENT), "quota": {"attachments": 40, "user_memory": "1024MiB"}}
# Half of the hostile application's own listeners have limits, so that bytes of theirs are held.
SLOW = {"listen": [6000, 6499], "connect": [6000, 6499], "send": "8 Mbit/s", "receive": "8 Mbit/s",
        "connections": 30}  # fmt: skip
WITH_STREAMS = {
    **CONFIG,
    "tcp": {"streams": 64},
    "tcp_rule": [{"user": 65534, **SLOW}, {"listen": [1000, 9999], "connect": [1000, 9999]}],
}
TOOL = Path(__file__).parent / "streamtool.py"


def echo_server(host: Host, port: int) -> Process:
    server = host.start([API_PROGRAMS / "api_server", str(port), "2"])
    server.line()
    return server


def going(process: Process) -> Process:
    assert process.line(60) == "going"
    return process


def ended_well(process: Process, number: int = signal.SIGTERM) -> tuple[int, int, int, int]:
    """(count, median, p99, most) of a steady, which says so if any byte was wrong."""
    status, out, err = process.stop(number, timeout=90)
    assert status == 0, err
    count, median, p99, most = map(int, out.split()[-4:])
    assert count > 0
    return count, median, p99, most


def rules() -> list[str]:
    if not RULES.exists():
        return ["none"]
    return subprocess.run(
        [RULES, "list"], capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.fixture(scope="module")
def lawful() -> Iterator[Host]:
    with one_host(config=protocol(PATIENT)) as host:
        before = host.homad.resources()
        echo_server(host, 4000)
        yield host
        host.space.stop()
        host.homad.await_resources(before)


@pytest.mark.parametrize("rule", rules())
def test_rule__broken_once(lawful: Host, rule: str) -> None:
    """The attachment ends or lives on as the rule wants, and the next one is served."""
    done = lawful.run([RULES, rule, lawful.v4, "4000"])
    assert done.stdout == "ok\n"
    lawful.homad.check()


def stream_server(host: Host, port: int) -> Process:
    """Echoes by homad's streams, with a correct library's words."""
    server = host.start([sys.executable, TOOL, host.homad.socket, "serve", host.v4, port, 10**9])
    assert server.line(60) == "ready"
    return server


def stream_steady(host: Host, to: Host, port: int) -> Process:
    """Connection after connection, each of whose bytes has to come back."""
    words = [sys.executable, TOOL, host.homad.socket, "steady", to.v4, port, SEED]
    return going(host.start(words))


def held(host: Host) -> tuple[int, int]:
    """Descriptors and memory of applications, but for the local ports that homad keeps for connections, whose number
    grows as they are needed."""
    kinds = host.homad.fds().values()
    return sum(not kind.startswith("socket:") for kind in kinds), host.homad.maps()


def test_hostile__only_itself_is_harmed() -> None:
    """Steady applications on both hosts, by RPCs and by streams, while another user's breaks every rule for a while."""
    with two_hosts(config=WITH_STREAMS) as (a, b):
        before = held(a)
        servers = [echo_server(a, 4000), echo_server(b, 4000)]
        # One for the hostile application, so that no order of its to end the server matters.
        target = echo_server(a, 4001)
        streams = [stream_server(host, port) for host in (a, b) for port in (5000, 4001)]
        pipes = [stream_steady(a, a, 5000), stream_steady(a, b, 5000), stream_steady(b, a, 5000)]
        fields = [
            going(a.start([STEADY, a.address(a, 4000)])),
            going(a.start([STEADY, a.address(b, 4000)])),
            going(b.start([STEADY, b.address(a, 4000, "v6")])),
        ]
        lives = [*NOBODY, str(HOSTILE), str(SEED), str(SECONDS), KIND, a.v4, "4001"]
        hostile = a.start(lives, HOMA_HOSTILE_FAR=b.v4)
        status, out, err = hostile.wait(SECONDS + 120)
        assert status == 0, f"{out}{err}\n{a.homad.log()[-4000:]}"
        counted = re.search(r"(\d+) lives, (\d+) refused:", out)
        assert counted, out
        lived, refused = map(int, counted.groups())
        assert refused < lived / 2, out
        connections = 0
        for pipe in pipes:
            assert pipe.running(), f"seed {SEED}: {pipe.wait(10)}"
            status, out, err = pipe.stop(signal.SIGTERM, timeout=90)
            assert status == 0, f"seed {SEED}: {err}"
            connections += int(out.split()[-2])
        rpcs = 0
        for steady in fields:
            assert steady.running(), f"seed {SEED}: {steady.wait(10)}"
            rpcs += ended_well(steady)[0]
        evicted = a.homad.log().count("it broke the rules")
        report(seed=SEED, seconds=SECONDS, lives=lived, evicted=evicted, rpcs_of_others=rpcs,
               connections_of_others=connections, harmed=0)  # fmt: skip
        for host in (a, b):
            host.homad.check()
        for server in (*servers, target):
            assert server.running(), server.wait()
            assert server.stop(timeout=60)[0] == 0
        for server in streams:
            assert server.running(), server.wait()
            server.stop(signal.SIGKILL)
        eventually(lambda: all(map(operator.le, held(a), before)), 60)


@pytest.mark.parametrize(
    ("kind", "port"),
    [("eventfds", 4001), ("ctl_deaf", 4002), ("unread", 4003), ("memory", 4004), ("stopped", 4005)],
)
def test_hostile__one_kind(lawful: Host, kind: str, port: int) -> None:
    """Each of those that could block the daemon rather than break it, alone, so that the culprit is named.
    Its requests may say that the server shall end, so they go to one of its own."""
    echo_server(lawful, port)
    steady = going(lawful.start([STEADY, lawful.address(lawful, 4000)]))
    for life in range(4):
        lawful.run(
            [*NOBODY, HOSTILE, str(SEED), f"life={life}", kind, lawful.v4, str(port)], timeout=120
        )
    ended_well(steady)
    lawful.homad.check()


@pytest.mark.parametrize("kind", ["silent", "attach_many", "ctl_garbage"])
def test_attach_socket_under_attack__others_attach(kind: str) -> None:
    """Somebody else's connections are not in the way of those who want in."""
    with one_host(config=CONFIG) as host:
        before = host.homad.resources()
        echo_server(host, 4000)
        hostile = host.start([*NOBODY, HOSTILE, str(SEED), "5", kind, host.v4, "4000"])
        served = 0
        while hostile.running():
            host.run([CLIENT, "receive_id", host.address(host, 4000)])
            served += 1
        assert hostile.wait()[0] == 0 and served > 1
        host.space.stop()
        host.homad.await_resources(before, 60)


def test_one_does_not_read__others_go_on() -> None:
    """Its ring and its quota are full for ever; a stopped server keeps nobody else waiting."""
    with one_host(config=protocol(PATIENT)) as host:
        echo_server(host, 4000)
        deaf = host.start([API_PROGRAMS / "api_server", "4001"])
        deaf.line()
        deaf.send_signal(signal.SIGSTOP)
        asking = [
            host.start([STEADY, host.address(host, 4001), "0", "64", str(n)])
            for n in (100, 100, 100000)
        ]
        steady = going(host.start([STEADY, host.address(host, 4000)]))
        time.sleep(1)
        assert ended_well(steady)[0] > 100
        assert all(process.running() for process in asking)
        deaf.send_signal(signal.SIGCONT)
        for process in asking:
            ended_well(going(process))
        assert deaf.stop(timeout=60)[0] == 0


def test_many_applications__all_make_progress() -> None:
    """64 at once, half of them with long messages: nobody starves."""
    count = 64
    with one_host(config={**protocol(PATIENT), "quota": {"rcvbuf_default": "4MiB"}}) as host:
        before = host.homad.resources()
        echo_server(host, 4000)
        echo_server(host, 4001)
        all_of_them = [
            host.start(
                [STEADY, host.address(host, 4000 + n % 2), "0", "4", "100" if n % 2 else "20000"]
            )
            for n in range(count)
        ]
        for each in all_of_them:
            going(each)
        time.sleep(2)
        for each in all_of_them:
            each.send_signal(signal.SIGTERM)
        counts = [ended_well(each)[0] for each in all_of_them]
        short = sorted(counts[1::2])
        print(f"short messages: {short[0]} to {short[-1]}; long: {sorted(counts[::2])}")
        assert min(counts) > 8, counts
        host.space.stop()
        host.homad.await_resources(before, 60)


@pytest.mark.parametrize("attachments", [1, 8])
def test_many_peers_and_rpcs_of_one_user__others_reach_new_peers(attachments: int) -> None:
    """What an engine remembers of peers and RPCs is limited; no user may take all of it."""
    with two_hosts(config=protocol(PATIENT)) as (a, b):
        before = a.homad.resources()
        echo_server(b, 4000)
        echo_server(a, 4000)
        spray = a.start([*NOBODY, PROGRAMS / "probe", "spray", str(attachments)])
        assert spray.line(60) == "sprayed"
        for host in (a, b):
            ended_well(going(a.start([STEADY, a.address(host, 4000, "v6"), "1"])))
            ended_well(going(a.start([STEADY, a.address(host, 4000), "1"])))
        a.space.stop()
        a.homad.await_resources(before, 60)
