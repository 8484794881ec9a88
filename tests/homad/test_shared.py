# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Several handles of one user serve one port. Requests are counted and nothing is timed: how many a
worker has is what homad delivered to it, and who answered is in the answers."""

from __future__ import annotations

import errno
import json
import os
import signal

import pytest
from attachtool import BIND, LISTEN, LISTEN_ON, LISTEN_SHARED, SHUTDOWN, Answer, Client
from homad import PATIENT, PROGRAMS, Host, needs_homad, needs_root, one_host, two_hosts
from netns import Process, eventually
from ops_tools import snapshot, tool
from test_cores import dedicated

pytestmark = [needs_homad, needs_root]

SHARER = PROGRAMS / "sharer"
SHARED = LISTEN_ON | LISTEN_SHARED
PORT = 4000


def workers(host: Host, how: str, names: str = "ABCD") -> dict[str, Process]:
    """One for each letter; all have the port."""
    started = {name: host.start([SHARER, how, str(PORT), name]) for name in names}
    for process in started.values():
        assert process.line(60) == "serving"
    return started


def delivered(host: Host, team: dict[str, Process]) -> list[int]:
    """How many requests each has got."""
    apps = {app["pid"]: app["counters"]["delivered"] for app in snapshot(host.homad)["apps"]}
    return [apps[process.pid] for process in team.values() if process.running()]


def asking(host: Host, server: Host, count: int, at_once: int = 1) -> Process:
    return host.start([SHARER, "ask", host.address(server, PORT), str(count), str(at_once)])


def answers(process: Process) -> dict[str, int]:
    """Who answered how many."""
    status, out, err = process.wait(120)
    assert status == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.mark.sanitized
@pytest.mark.parametrize("local", [True, False])
def test_four_workers__what_waits_is_shared_evenly(local: bool) -> None:
    """Three clients at once; from the same host the short way, from another one through the engine."""
    with two_hosts() as (a, b):
        client = a if local else b
        team = workers(a, "hold")
        clients = [asking(client, a, 40, 40) for _ in range(3)]
        eventually(lambda: sum(delivered(a, team)) == 120, 60)
        assert delivered(a, team) == [30] * 4
        assert tool(a.homad, "ss").stdout.count("server, shared") == 4
        for worker in team.values():
            worker.send_signal(signal.SIGUSR1)
        for process in clients:
            assert answers(process)["failed"] == 0


@pytest.mark.parametrize("local", [True, False])
def test_four_workers__who_answers_at_once_takes_turns(local: bool) -> None:
    with two_hosts() as (a, b):
        workers(a, "echo")
        assert answers(asking(a if local else b, a, 400)) == dict.fromkeys("ABCD", 100) | {
            "failed": 0
        }


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core")
def test_four_workers__at_two_fast_path_threads() -> None:
    with dedicated({"scale": False}) as (a, b):
        workers(a, "echo")
        for client in (a, b):
            assert answers(asking(client, a, 40)) == dict.fromkeys("ABCD", 10) | {"failed": 0}


@pytest.mark.parametrize("local", [True, False])
def test_one_stands_still__it_keeps_only_its_share(local: bool) -> None:
    """Of 8 that are open it has 2 at most: it gets another one only if each of the others has as many."""
    with two_hosts() as (a, b):
        team = workers(a, "echo")
        team["B"].send_signal(signal.SIGSTOP)
        client = asking(a if local else b, a, 1000, 8)
        assert client.line(120) == "nearly"
        assert delivered(a, team)[1] <= 2
        team["B"].send_signal(signal.SIGCONT)
        counts = answers(client)
        assert counts["failed"] == 0 and counts.get("B", 0) <= 10


@pytest.mark.sanitized
def test_one_is_killed__its_requests_fail_and_the_others_go_on() -> None:
    with one_host(config=PATIENT) as host:
        team = workers(host, "hold")
        client = asking(host, host, 40, 40)
        eventually(lambda: sum(delivered(host, team)) == 40, 60)
        team.pop("A").stop(signal.SIGKILL)
        for worker in team.values():
            worker.send_signal(signal.SIGUSR1)
        assert answers(client) == dict.fromkeys("BCD", 10) | {"failed": 10}
        assert answers(asking(host, host, 30)) == dict.fromkeys("BCD", 10) | {"failed": 0}
        # Its place is free again, and when all have gone the port is.
        team |= workers(host, "echo", "A")
        assert answers(asking(host, host, 40)) == dict.fromkeys("ABCD", 10) | {"failed": 0}
        for worker in team.values():
            worker.stop(signal.SIGKILL)
        eventually(lambda: not snapshot(host.homad)["apps"], 60)
        with Client(host.homad.socket) as alone:
            alone.attach()
            assert alone.ask(BIND, port=PORT).error == 0


def test_homad_restarts__all_share_the_port_again() -> None:
    with one_host(config=PATIENT) as host:
        workers(host, "echo")
        host.homad.kill()
        host.homad.start()

        def there() -> bool:
            apps = snapshot(host.homad)["apps"]
            return [(app["port"], app["shared"]) for app in apps] == [(PORT, True)] * 4

        eventually(there, 60)
        assert answers(asking(host, host, 40)) == dict.fromkeys("ABCD", 10) | {"failed": 0}


def test_another_user__is_refused() -> None:
    with one_host(config=PATIENT) as host:
        workers(host, "echo", "A")
        user = ["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"]
        done = host.run([*user, SHARER, "echo", str(PORT), "B"], check=False)
        assert done.returncode and "another user's or does not share it" in done.stderr
        # This id may be any of several users to a homad in a user namespace.
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = host.run([*nobody, SHARER, "echo", "4001", "B"], check=False)
        assert done.returncode and "cannot tell apart" in done.stderr
        assert answers(asking(host, host, 10)) == {"A": 10, "failed": 0}


def refused(answer: Answer, error: int) -> None:
    assert answer.error == -error, answer
    assert answer.text


@pytest.mark.sanitized
def test_hostile__rubbish_is_refused_and_harms_nobody() -> None:
    with one_host(config=PATIENT) as host:
        team = workers(host, "echo", "AB")
        with Client(host.homad.socket) as one, Client(host.homad.socket) as two:
            own = one.attach().port
            two.attach()
            for bits in (8, 0xFF, 1 << 32 | SHARED, 1 << 63, 2**64 - 1):
                refused(one.ask(LISTEN, bits, PORT), errno.EINVAL)
            for port in (0, 0x8000, 0xFFFF):
                refused(one.ask(LISTEN, SHARED, port), errno.EINVAL)
            for ask in (BIND, LISTEN):
                refused(one.ask(ask, LISTEN_ON if ask == LISTEN else 0, PORT), errno.EADDRINUSE)
            # It comes and goes, with others and alone, and says it twice.
            for _ in range(50):
                for client in (one, two):
                    assert client.ask(LISTEN, SHARED, PORT).error == 0
                    assert client.ask(LISTEN, SHARED, PORT).error == 0
                    refused(client.ask(LISTEN, LISTEN_ON, PORT), errno.EADDRINUSE)
                assert one.ask(LISTEN, SHARED, 5000).error == 0
                refused(two.ask(BIND, port=5000), errno.EADDRINUSE)
                assert two.ask(LISTEN, SHARED, 5000).error == 0
                assert one.ask(LISTEN, SHARED, 6000).error == 0
                assert one.ask(BIND, port=6000).error == 0
            # Who has shut down gets none, and who says that it takes none.
            assert one.ask(LISTEN, SHARED, PORT).error == 0
            assert two.ask(LISTEN, SHARED, PORT).error == 0
            assert one.ask(SHUTDOWN).error == 0
            assert two.ask(LISTEN, LISTEN_SHARED, PORT).error == 0
            assert own >= 0x8000
            assert answers(asking(host, host, 40)) == {"A": 20, "B": 20, "failed": 0}
        assert all(worker.running() for worker in team.values())


def test_as_many_as_can_share__one_more_is_refused() -> None:
    with one_host(config=PATIENT | {"quota": {"attachments": 100}}) as host:
        clients = [Client(host.homad.socket) for _ in range(65)]
        for client in clients:
            client.attach(1 << 17)
        for client in clients[:64]:
            assert client.ask(LISTEN, SHARED, PORT).error == 0
        refused(clients[64].ask(LISTEN, SHARED, PORT), errno.ENOBUFS)
        clients[0].close()
        eventually(lambda: clients[64].ask(LISTEN, SHARED, PORT).error == 0, 60)
        for client in clients:
            client.close()
