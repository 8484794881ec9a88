# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs for Homa sockets over homad: on one machine, between two, across forks and restarts."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from homad import Host, needs_homad, needs_root, one_host, two_hosts
from preloadtool import (
    CHECKS, LIBRARY, PATH_CHECKS, SERVERS, SHARED_CHECKS, client, errors, said_ok, server,
)  # fmt: skip

pytestmark = [
    needs_homad,
    needs_root,
    pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built"),
]


def check_from(host: Host, family: str, other: Host, check: str) -> None:
    argv = client(family, other.v4 if family == "v4" else other.v6, check)
    said_ok(host.start(argv).wait(90), argv)


@pytest.fixture(scope="module")
def machine() -> Iterator[Host]:
    with one_host() as host:
        yield host


@pytest.fixture(scope="module", params=["v4", "v6"])
def local(request: pytest.FixtureRequest, machine: Host) -> Iterator[tuple[str, Host]]:
    process = machine.start(server(request.param))
    assert process.line() == "ready"
    yield request.param, machine
    assert process.running(), process.stderr.rest(5)
    process.stop()


@pytest.fixture(scope="module")
def wire() -> Iterator[tuple[Host, Host]]:
    with two_hosts() as (a, b):
        process = b.start(server("v4"))
        assert process.line() == "ready"
        yield a, b
        assert process.running(), process.stderr.rest(5)


@pytest.mark.parametrize("check", [*CHECKS, *SHARED_CHECKS])
def test_client__same_machine(local: tuple[str, Host], check: str) -> None:
    family, host = local
    check_from(host, family, host, check)


@pytest.mark.parametrize("check", PATH_CHECKS)
def test_client__over_the_wire(wire: tuple[Host, Host], check: str) -> None:
    check_from(wire[0], "v4", wire[1], check)


@pytest.mark.parametrize("how", [*SERVERS, "fork", "fork-poll", "fork-epoll", "handover"])
def test_server__waits_in_all_ways(machine: Host, how: str) -> None:
    """ "fork": a child serves on the port that its parent had, until the namespace ends; it may wait
    for messages already while its parent still has it."""
    port = 4001 + len(how) if how not in SERVERS else 4001
    process = machine.start(server("v4", how, port=port))
    assert process.line() == "ready"
    if how not in SERVERS:
        if how != "handover":
            process.wait()
        time.sleep(0.5)  # the child takes over
    for check in ("sizes", "async", "threads"):
        argv = client("v4", machine.v4, check, port=port)
        said_ok(machine.start(argv).wait(90), argv)
    if not how.startswith("fork"):
        assert process.running(), process.stderr.rest(5)
        process.stop()


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "by_packets"])
def test_client__refused_at_once(direct: bool) -> None:
    """A bound socket that is no server, and an IPv4 server for a client by IPv6: port unreachable."""
    with two_hosts(config={"network": {"direct": direct}}) as (a, b):
        for how, port in (("deaf", 4001), ("block", 4002)):
            assert b.start(server("v4", how, port=port)).line() == "ready"
        assert b.start(server("v6", "deaf", port=4003)).line() == "ready"
        for host in (a, b):
            for family, port in (("v4", 4001), ("v6", 4002), ("v6", 4003), ("v4", 4003)):
                argv = client(family, b.v4 if family == "v4" else b.v6, "refused", port=port)
                said_ok(host.start(argv).wait(90), argv)
            argv = client("v4", b.v4, "sizes", port=4002)
            said_ok(host.start(argv).wait(90), argv)


def test_client__no_room_for_more() -> None:
    """A socket waits for room as long as SO_SNDTIMEO lets it."""
    with one_host(config={"quota": {"rpcs": 64}}) as host:
        process = host.start(server("v4"))
        assert process.line() == "ready"
        check_from(host, "v4", host, "full")
        process.stop()


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_errors__as_the_kernel_says(family: str) -> None:
    with one_host() as host:
        argv = errors(family, "taken")
        said_ok(host.start(argv).wait(60), argv)


def test_restart__sockets_live_on() -> None:
    """Server and client keep their sockets over a crash of the daemon; an open request fails."""
    with one_host() as host:
        process = host.start(server("v4", "epoll"))
        assert process.line() == "ready"
        deaf = host.start(server("v4", "deaf", port=4005))
        assert deaf.line() == "ready"
        argv = client("v4", host.v4, "restart")
        waiting = host.start(argv)
        assert waiting.line() == "waiting"
        host.homad.kill()
        host.homad.start()
        said_ok(waiting.wait(90), argv)
        check_from(host, "v4", host, "sizes")
        argv = client("v4", host.v4, "refused", port=4005)
        said_ok(host.start(argv).wait(90), argv)
        assert process.running(), process.stderr.rest(5)
        assert deaf.running(), deaf.stderr.rest(5)
